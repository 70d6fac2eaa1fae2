#!/usr/bin/env python3
"""What plain reading of the disk past the page cache gives (O_DIRECT), the measure for loading a cold file.

    direct.py FILES… [--threads 2 4 8 16] [--mib 4 8] [--seconds 6] [--whole]

Threads take the next block of the files in turn and read it with preadv into page-aligned memory of their own; nothing
is done with the bytes. Every combination of threads and block size runs for `--seconds` at most, or until all files are
read once. Each goes on where the one before it ended, so that no combination profits from what the machine below keeps of
the blocks that were just read. The page cache is dropped before each. GB/s are 10^9 bytes per second of the wall clock,
from before the first read to the end of the last one.

`--whole` reads all files once from their beginning, whatever time it takes: the same work as loading them.
"""

import argparse
import mmap
import os
import sys
import threading
import time

import cache


def blocks_of(files, block_bytes):
    """Every block of every file, in order."""
    return [(n, at) for n, path in enumerate(files) for at in range(0, os.path.getsize(path), block_bytes)]


def measure(files, threads, block_bytes, first_byte, limit_s):
    """Reads with so many threads; returns the bytes read, the seconds, and where the next one goes on."""
    blocks = blocks_of(files, block_bytes)
    sizes = [os.path.getsize(path) for path in files]
    descriptors = [os.open(path, os.O_RDONLY | os.O_DIRECT) for path in files]
    buffers = [mmap.mmap(-1, block_bytes) for _ in range(threads)]
    for buffer in buffers:  # touched now, so that no page fault is timed
        for page in range(0, block_bytes, mmap.PAGESIZE):
            buffer[page] = 1
    first = first_byte // block_bytes % len(blocks)
    turn, taken, totals, errors = threading.Lock(), [0], [0] * threads, []
    gate = threading.Barrier(threads + 1)
    deadline = [0.0]

    def reader(number):
        buffer, total = buffers[number], 0
        gate.wait()
        try:
            while time.perf_counter() < deadline[0]:
                with turn:
                    mine = taken[0]
                    taken[0] += 1
                if mine >= len(blocks):
                    break
                n, at = blocks[(first + mine) % len(blocks)]
                got = os.preadv(descriptors[n], [buffer], at)
                if got != min(block_bytes, sizes[n] - at):
                    raise OSError(f"{files[n]}: {got} bytes at {at}")
                total += got
        except OSError as error:
            errors.append(error)
        totals[number] = total

    readers = [threading.Thread(target=reader, args=[number]) for number in range(threads)]
    for thread in readers:
        thread.start()
    began = time.perf_counter()
    deadline[0] = began + limit_s
    gate.wait()
    for thread in readers:
        thread.join()
    seconds = time.perf_counter() - began
    for descriptor in descriptors:
        os.close(descriptor)
    if errors:
        sys.exit(f"O_DIRECT reading failed: {errors[0]}")
    return sum(totals), seconds, (first + min(taken[0], len(blocks))) % len(blocks) * block_bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILES", nargs="+", help="files, or folders with safetensors files")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--mib", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--whole", action="store_true")
    arguments = parser.parse_args()
    files = cache.expand(arguments.files)
    goes_on, best = 0, (0.0, 0, 0)
    for mib in arguments.mib:
        for threads in arguments.threads:
            left = cache.drop_all(files)
            if left > 0.01:
                print(f"warning: {100 * left:.1f}% of the files stayed in the cache")
            start, limit_s = (0, float("inf")) if arguments.whole else (goes_on, arguments.seconds)
            size, seconds, goes_on = measure(files, threads, mib << 20, start, limit_s)
            rate = size / seconds / 1e9
            best = max(best, (rate, threads, mib))
            print(f"direct {threads:2} threads x {mib} MiB: {rate:6.3f} GB/s ({size / 1e9:.2f} GB in {seconds:.2f} s)", flush=True)
    print(f"direct best: {best[0]:.3f} GB/s with --threads {best[1]} --mib {best[2]}")


if __name__ == "__main__":
    main()
