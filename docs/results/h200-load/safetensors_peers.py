#!/usr/bin/env python3
"""How fast the safetensors package loads files in the page cache to the GPU.

    safetensors_peers.py DIR [--device cuda|cpu] [--new FOLDER]      (DIR as make.py wrote it)

Two versions: the installed one with `load_file(device="cuda")`, file after file, and the one unpacked in `--new`
(0.9.0rc1) with `safe_open(…).prefetch()`. Its variants are all measured, so that the fastest one is what counts:
  prefetch              file after file, 8 threads as it comes
  prefetch, all at once the loaders of all files are started first, 8 threads each, then emptied
  prefetch, 14 threads  file after file

Each version and set of files has a process of its own. There the CUDA context is made first (`torch.empty` on the
device, synchronised), then the clock runs from before the first file is opened until every tensor is in hand and
`torch.cuda.synchronize()` has returned. The first call of the process is the one of the first variant. Then come later
calls, of which the median is given; what the call before had loaded is freed before the clock starts. GB/s are 10^9
bytes of tensor data a second. After the clock stopped, tensors of the last call are compared with the file.

With `--device cpu` the package's `get_tensors` stands in for prefetch: that tries this script, and measures nothing.
"""

import argparse
import gc
import glob
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
COMPARED_BYTES = 4 << 20


def header(path):
    """Names, ranges in the file and the sum of the tensors' bytes."""
    with open(path, "rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        entries = json.loads(opened.read(length))
    entries.pop("__metadata__", None)
    ranges = {name: [8 + length + at for at in entry["data_offsets"]] for name, entry in entries.items()}
    return ranges, sum(end - start for start, end in ranges.values())


def compare(files, tensors):
    """Compares the beginning and the end of some tensors of every file with its bytes; returns how many."""
    import torch

    compared = 0
    for path in files:
        ranges, _ = header(path)
        names = sorted(ranges)
        descriptor = os.open(path, os.O_RDONLY)
        for name in dict.fromkeys([names[0], names[-1], *names[:: max(1, len(names) // 12)]]):
            start, end = ranges[name]
            loaded = tensors[name].reshape(-1).view(torch.uint8)
            if loaded.numel() != end - start:
                sys.exit(f"{path}: {name} has {loaded.numel()} bytes instead of {end - start}")
            size = min(COMPARED_BYTES, end - start)
            for at in (0, end - start - size):
                if loaded[at : at + size].cpu().numpy().tobytes() != os.pread(descriptor, size, start + at):
                    sys.exit(f"{path}: {name} differs from the file")
            compared += 1
        os.close(descriptor)
    return compared


def load_files(files, device):
    from safetensors.torch import load_file

    tensors = {}
    for path in files:
        tensors.update(load_file(path, device=device))
    return tensors


def prefetch_in_turn(files, device, threads=8):
    from safetensors import safe_open

    tensors = {}
    for path in files:
        with safe_open(path, framework="pt", device=device) as opened:
            if device == "cpu":
                tensors.update(opened.get_tensors())
                continue
            with opened.prefetch(device=device, threads=threads) as loader:
                for name, tensor in loader:
                    tensors[name] = tensor
    return tensors


def prefetch_at_once(files, device):
    from safetensors import safe_open

    handles = [safe_open(path, framework="pt", device=device) for path in files]
    if device == "cpu":
        return {name: tensor for handle in handles for name, tensor in handle.get_tensors().items()}
    tensors = {}
    loaders = [handle.prefetch(device=device, threads=8) for handle in handles]
    for loader in loaders:
        for name, tensor in loader:
            tensors[name] = tensor
    for loader in loaders:
        loader.close()
    return tensors


def child(kind, files, device, later_calls):
    """Measures one version on one set of files; prints a line of JSON for each variant."""
    import torch
    import safetensors

    if device == "cpu":
        ready = lambda: None
    else:
        device = "cuda:0"
        ready = torch.cuda.synchronize
    torch.empty(1, device=device)
    ready()
    size = sum(header(path)[1] for path in files)
    if kind == "load_file":
        variants = [(f'load_file(device="{device.split(":")[0]}")', load_files)]
    else:
        variants = [("prefetch", prefetch_in_turn)]
        if len(files) > 1:
            variants.append(("prefetch, all at once", prefetch_at_once))
        variants.append(("prefetch, 14 threads", lambda files, device: prefetch_in_turn(files, device, 14)))
        if device == "cpu":
            variants = [(f"(get_tensors) {name}", load) for name, load in variants]
    for number, (name, load) in enumerate(variants):
        rates = []
        tensors = None
        # A later variant has a call more, not counted, so that its buffers are there.
        for call in range(1 + later_calls):
            del tensors
            gc.collect()
            ready()
            began = time.perf_counter()
            tensors = load(files, device)
            ready()
            rates.append(size / (time.perf_counter() - began) / 1e9)
        compared = compare(files, tensors)
        print(json.dumps({
            "version": safetensors.__version__,
            "name": name,
            "first": rates[0] if number == 0 else None,
            "later": rates[1:],
            "compared": compared,
            "gb": size / 1e9,
        }), flush=True)
        del tensors
        tensors = None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--new", default=f"{HERE}/safetensors09", help="where 0.9.0rc1 is unpacked")
    parser.add_argument("--child", nargs=2, metavar=("KIND", "LATER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        files = sorted(glob.glob(f"{arguments.folder}/*.safetensors"))
        child(arguments.child[0], files, arguments.device, int(arguments.child[1]))
        return 0

    import cache

    failed = False
    for name in ("big", "many"):
        files = cache.expand([f"{arguments.folder}/{name}"])
        for kind, later_calls in (("load_file", 2 if name == "big" else 4), ("prefetch", 4)):
            share = cache.cached_share(files)
            if share < 0.999:
                print(f"warning: only {100 * share:.1f}% of {name} is in the page cache")
            environment = dict(os.environ)
            if kind == "prefetch":
                if not os.path.isdir(f"{arguments.new}/safetensors"):
                    sys.exit(f"{arguments.new}: unpack the wheel of safetensors 0.9.0rc1 there, or name it with --new")
                environment["PYTHONPATH"] = arguments.new
            command = [sys.executable, os.path.abspath(__file__), f"{arguments.folder}/{name}"]
            command += ["--device", arguments.device, "--child", kind, str(later_calls)]
            try:
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=90)
                output, status = done.stdout, done.returncode
            except subprocess.TimeoutExpired as slow:
                output, status = (slow.stdout or b"").decode(), "after 90 s"
            for line in output.splitlines():
                if not line.startswith("{"):
                    print(line)
                    continue
                found = json.loads(line)
                first = f"{found['first']:5.1f}" if found["first"] else "    –"
                later = found["later"]
                label = f"safetensors {found['version']} {found['name']}"
                print(f"{name:4} {found['gb']:5.2f} GB  {label:46} first {first}  later {statistics.median(later):5.1f} GB/s"
                      f"  ({' '.join(f'{rate:.1f}' for rate in later)}; {found['compared']} tensors compared)", flush=True)
            if status != 0:
                failed = True
                print(f"{name}: {kind} ended with {status}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
