"""Loading a model's weights: ``pinlane.load_file`` beside safetensors, all at once and one by one.

    python model.py                       # the first GPU; without one, a simulated H200
    python model.py --file model.safetensors

Cells begin with ``# %%``: editors run them one by one, like a notebook.
"""

# %% Where to run
import argparse
import os
import tempfile
import time

import safetensors.torch
import torch

import pinlane

arguments = argparse.ArgumentParser(description="A model's weights to the GPU")
arguments.add_argument("--device", help='such as "cuda:0" or "sim:h200"')
arguments.add_argument("--file", help="a safetensors file; without one, a small one is made")
arguments = arguments.parse_args()

if arguments.device is None:
    arguments.device = "cuda:0" if torch.cuda.is_available() else "sim:h200"
device = pinlane.device(arguments.device)
print(f"on {device.model}" + (" (simulated: results are right, times mean nothing)" if device.simulated else ""))

# %% A file of weights: four small layers, if none is given
folder = tempfile.TemporaryDirectory()
path = arguments.file
if path is None:
    path = os.path.join(folder.name, "model.safetensors")
    torch.manual_seed(0)
    weights = {f"layers.{layer}.weight": torch.rand(512, 512).bfloat16() for layer in range(4)}
    safetensors.torch.save_file(weights, path)


# %% safetensors
start = time.perf_counter()
expected = safetensors.torch.load_file(path, "cpu" if device.simulated else arguments.device)
print(f"safetensors.torch.load_file {time.perf_counter() - start:6.2f} s" + (" to host memory" * device.simulated))

# %% Pinlane: tensors of torch on a GPU, DeviceArrays on a simulated one
start = time.perf_counter()
loaded = pinlane.load_file(path, arguments.device)
print(f"pinlane.load_file           {time.perf_counter() - start:6.2f} s")


# %% The same bytes
def as_bytes(tensor):
    if isinstance(tensor, pinlane.DeviceArray):
        return tensor.numpy().tobytes()
    return tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes()


assert loaded.keys() == expected.keys()
assert all(as_bytes(loaded[name]) == as_bytes(expected[name]) for name in expected)
print(f"{len(loaded)} tensors, equal")

# %% One by one, as they arrive: for models that are larger than the free memory
total_bytes = 0
for name, tensor in pinlane.iter_tensors(path, arguments.device, device_bytes=64 << 20):
    total_bytes += tensor.nbytes
print(f"{total_bytes / 1e6:.1f} MB one by one")

# %% A whole model of transformers:
#
#     with pinlane.transformers.fast_loading("cuda"):
#         model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", device_map="cuda")
