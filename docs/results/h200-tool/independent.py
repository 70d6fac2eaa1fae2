"""Independent measurements of pinned copies against those of `pinlane bench`.

    nvcc -O2 -o independent independent.cu -lcuda
    python independent.py bench.json

Two other programs: `independent.cu`, which calls the driver itself, for all sizes; and PyTorch for
large ones (for small ones the time is that of Python between two calls). Both put CUDA events around
one asynchronous copy on an idle stream, and take the median.
"""

import json
import statistics
import subprocess
import sys

import torch

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


def main():
    with open(sys.argv[1]) as file:
        lines = json.load(file)["lines"]
    lines = [line for line in lines if line["memory"] == "pinned" and line["route"] != "both"]
    drivers = driver_rates(sorted({line["bytes"] for line in lines}))
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}; pinned memory, GB/s")
    print(f"{'':>4} {'bytes':>10} {'bench':>8} {'driver':>8} {'':>7} {'PyTorch':>8}")
    for line in lines:
        route, bytes_, ours = line["route"], line["bytes"], line["gb_per_s"]
        others = [drivers[route, bytes_]]
        if bytes_ >= LARGE:
            others.append(torch_rate(route, bytes_))
        words = [f"{rate:>8.2f} {(ours / rate - 1) * 100:>+6.1f}%" for rate in others]
        print(f"{route:>4} {bytes_:>10} {ours:>8.2f} {' '.join(words)}")


main()
