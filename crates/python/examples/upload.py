"""One array to the GPU three ways: the driver's own copy, pinned memory, and the express lane.

    python upload.py               # on the first GPU, or a simulated one if there is none
    python upload.py sim:h200

The times are those of the GPU's own clock.
"""

# %%
import sys

import numpy as np

import pinlane

DEVICE = sys.argv[1] if len(sys.argv) > 1 else (pinlane.device_names() or ["sim:h200"])[0]
gpu = pinlane.device(DEVICE)
stream = gpu.stream()

# %% A NumPy array in ordinary memory, one in pinned memory, and memory on the GPU.
ordinary = np.random.default_rng(1).random(64 << 20 >> 2, "f4")  # 64 MiB
pinned = pinlane.empty_like(ordinary, device=gpu)
pinned[...] = ordinary
on_gpu = pinlane.to_device(ordinary, gpu)


# %% The three ways.
def by_driver():
    stream.driver_copy(ordinary, on_gpu)  # what torch.from_numpy(x).cuda() and PyCUDA do


def from_pinned_memory():
    pinlane.to_device(pinned, out=on_gpu, stream=stream, blocking=False)


def by_express_lane():
    pinlane.to_device(ordinary, out=on_gpu, stream=stream)


def gb_per_s(copy):
    start = stream.record()
    copy()
    end = stream.record()
    end.synchronize()
    return ordinary.nbytes / start.elapsed_ms(end) / 1e6


# %%
note = ", SIMULATED" if gpu.simulated else ""
print(f"{ordinary.nbytes >> 20} MiB to {gpu.model}{note}")
for name, copy in [
    ("ordinary memory, the driver", by_driver),
    ("pinned memory", from_pinned_memory),
    ("ordinary memory, express lane", by_express_lane),
]:
    best = max(gb_per_s(copy) for _ in range(5))
    print(f"{name:32}{best:6.1f} GB/s")
    assert (pinlane.to_host(on_gpu, stream=stream) == ordinary).all()
