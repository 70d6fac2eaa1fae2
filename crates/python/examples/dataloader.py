"""A training loop over a DataLoader, as it is usually written and with a prefetcher.

    python dataloader.py                  # the first GPU; without one, a simulated H200
    python dataloader.py --device sim:h200

Cells begin with ``# %%``: editors run them one by one, like a notebook.
"""

# %% Where to run
import argparse
import time

import torch

import pinlane
from pinlane.torch import CudaPrefetcher

arguments = argparse.ArgumentParser(description="A DataLoader loop with and without a prefetcher")
arguments.add_argument("--device", help='such as "cuda:0" or "sim:h200"')
arguments.add_argument("--batch", type=int, default=16, help="images in a batch")
arguments.add_argument("--batches", type=int, default=6)
arguments = arguments.parse_args()

if arguments.device is None:
    arguments.device = "cuda:0" if torch.cuda.is_available() else "sim:h200"
device = pinlane.device(arguments.device)
print(f"on {device.model}" + (" (simulated: results are right, times mean nothing)" if device.simulated else ""))


# %% Images, made by worker processes
class Images(torch.utils.data.Dataset):
    """Random images, as float32, with a label."""

    def __len__(self):
        return arguments.batch * arguments.batches

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 224, 224, generator=generator), index % 10


def loader(**options):
    return torch.utils.data.DataLoader(Images(), arguments.batch, num_workers=2, **options)


# %% The work: the mean of each image
def mean(images):
    # A simulated device computes nothing; its arrays come back for that.
    images = torch.from_numpy(images.numpy()) if device.simulated else images
    return images.mean(dim=(1, 2, 3))


# %% As usual: pinned memory by torch, a copy when the batch is needed
def usual():
    means = []
    for images, labels in loader(pin_memory=not device.simulated):
        if device.simulated:
            images = pinlane.to_device(images, device)
        else:
            images = images.to(arguments.device, non_blocking=True)
        means.append(mean(images).cpu())
    return torch.cat(means)


# %% With a prefetcher: batches come from the workers' memory, and are on the GPU when the loop asks for them
def prefetched():
    means = []
    for images, labels in CudaPrefetcher(loader(), arguments.device):
        means.append(mean(images).cpu())
    return torch.cat(means)


# %% Side by side
def timed(loop):
    start = time.perf_counter()
    result = loop()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    expected, usual_s = timed(usual)
    found, prefetched_s = timed(prefetched)
    assert torch.equal(found, expected), "the same batches in the same order"
    print(f"as usual            {usual_s:6.2f} s")
    print(f"with CudaPrefetcher {prefetched_s:6.2f} s")
