"""What a GPU does, drawn: copies and kernels on two streams.

    python timeline.py                           # on the first GPU, or a simulated one if there is none; as text
    python timeline.py cuda:0 timeline.html      # as a page to zoom

In a notebook, a Timeline draws itself: end the cell with ``timeline``.
"""

# %%
import sys

import pinlane

DEVICE = sys.argv[1] if len(sys.argv) > 1 else (pinlane.device_names() or ["sim:h200"])[0]
CHUNKS, ELEMENTS = 6, 1 << 20

# %% Pinned memory and device memory, two of each, so that one is filled while the other is in use.
gpu = pinlane.device(DEVICE)
up, down = gpu.stream(), gpu.stream()
sources = [pinlane.full(ELEMENTS, number, "f4", device=gpu) for number in range(2)]
results = [pinlane.empty_like(source, device=gpu) for source in sources]
on_gpu = [pinlane.to_device(source, gpu) for source in sources]

# %% The next chunk goes up on one stream while the last one comes down on another. Pinlane orders those that share memory.
with pinlane.Timeline(gpu, title="Up and down at once") as timeline:
    pinlane.to_device(sources[0], out=on_gpu[0], stream=up, blocking=False)
    for chunk in range(CHUNKS):
        this, other = chunk % 2, 1 - chunk % 2
        if chunk + 1 < CHUNKS:
            pinlane.to_device(sources[other], out=on_gpu[other], stream=up, blocking=False)
        pinlane.to_host(on_gpu[this], out=results[this], stream=down)

# %%
if len(sys.argv) > 2:
    timeline.save(sys.argv[2])
print(timeline)
copied = sum(span["bytes"] for span in timeline.spans)
last_ns = max(span["end_ns"] for span in timeline.spans)
print(f"{copied / last_ns:.1f} GB/s in both directions together")
