"""Independent measurements of pinned copies against those of `pinlane bench`.

    nvcc -O2 -o independent independent.cu -lcuda
    python independent.py

Two other programs: `independent.cu`, which calls the driver itself, for all sizes; and PyTorch for
large ones (for small ones the time is that of Python between two calls). Both put CUDA events around
one asynchronous copy on an idle stream, and take the median. All three take turns, so that a machine
that is slower for a while is so for all of them; the figure of each is the median of its turns.
"""

import json
import statistics
import subprocess

import torch

TURNS = 7
ROUNDS = 60
WARM_UP = 5
LARGE = 16 << 20


def torch_rate(route, bytes_):
    host = torch.ones(bytes_, dtype=torch.uint8).pin_memory()
    device = torch.zeros(bytes_, dtype=torch.uint8, device="cuda")
    source, target = (host, device) if route == "h2d" else (device, host)
    times = []
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(WARM_UP + ROUNDS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            target.copy_(source, non_blocking=True)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
    return bytes_ / statistics.median(times[WARM_UP:]) / 1e6


def driver_rates(sizes):
    said = subprocess.run(["./independent", *map(str, sizes)], check=True, capture_output=True, text=True)
    rates = {}
    for line in said.stdout.splitlines():
        route, bytes_, rate = line.split()
        rates[route, int(bytes_)] = float(rate)
    return rates


def bench_rates():
    words = ["./pinlane", "--device", "cuda", "--json", "bench", "--memory", "pinned", "--routes", "h2d,d2h", "--time", "4s"]
    said = subprocess.run(words, check=True, capture_output=True, text=True)
    return {(line["route"], line["bytes"]): line["gb_per_s"] for line in json.loads(said.stdout)["lines"]}


def main():
    turns = []
    for _ in range(TURNS):
        ours = bench_rates()
        drivers = driver_rates(sorted({bytes_ for _, bytes_ in ours}))
        torches = {at: torch_rate(*at) for at in ours if at[1] >= LARGE}
        turns.append((ours, drivers, torches))
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; pinned memory, GB/s, {TURNS} turns")
    print(f"{'':>4} {'bytes':>10} {'bench':>8} {'driver':>8} {'':>7} {'PyTorch':>8}")
    for at in turns[0][0]:
        ours, *others = (statistics.median(of[at] for of in each) for each in zip(*turns) if at in each[0])
        words = [f"{rate:>8.2f} {(ours / rate - 1) * 100:>+6.1f}%" for rate in others]
        print(f"{at[0]:>4} {at[1]:>10} {ours:>8.2f} {' '.join(words)}")


main()
