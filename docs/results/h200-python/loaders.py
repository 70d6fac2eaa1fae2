"""Batches: `CudaPrefetcher` over torch's DataLoader, and `pinlane.DataLoader`."""

import gc
import itertools
import statistics
import time
import traceback

from common import needed
from copies import TUNED

# torch loads this module again in its workers where they are not forked: nothing heavy at its top.


class Pictures:
    """Float32 images in memory, of which each sample is a view. The first number of an image is its label."""

    def __init__(self, length, distinct, side):
        import torch

        self.length = length
        self.data = torch.rand(distinct, 3, side, side)
        self.data[:, 0, 0, 0] = torch.arange(distinct, dtype=torch.float32)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        label = index % len(self.data)
        return self.data[label], label


class Samples:
    """Images of uint8 as torch's DataLoader takes them: a view and a label."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def batches_per_s(run, batches, warm_up, seconds, right):
    """Batches a second, after a warm-up, for so many seconds; the first and the last one are checked."""
    iterator = iter(batches)
    for batch in itertools.islice(iterator, warm_up):
        last = batch
    assert right(last), "the warm-up's last batch is wrong"
    run.synchronize()
    began, count = time.perf_counter(), 0
    for batch in iterator:
        last, count = batch, count + 1
        if time.perf_counter() - began >= seconds:
            break
    run.synchronize()
    rate = count / (time.perf_counter() - began)
    assert right(last), "the last batch is wrong"
    del batch, last, iterator
    gc.collect()
    return rate, count


# --- CudaPrefetcher ---------------------------------------------------------------------------------------------


def prefetcher_rates(run, rounds, seconds):
    """Ways to bring batches of 154 MB to the GPU, in turns, a loader of its own each time."""
    import torch

    side, batch, workers = run.pick(224, 8), run.pick(256, 4), run.pick(8, 2)
    pictures = Pictures(batch * 100_000, run.pick(512, 16), side)

    def loader(**arguments):
        return torch.utils.data.DataLoader(pictures, batch_size=batch, num_workers=workers, **arguments)

    def pinned():
        for images, labels in loader(pin_memory=not run.smoke):
            yield run.torch_upload(images, non_blocking=True), run.torch_upload(labels, non_blocking=True)

    def pageable():
        for images, labels in loader():
            yield run.torch_upload(images), run.torch_upload(labels)

    def prefetched():
        prefetch = needed("pinlane.torch", "CudaPrefetcher")
        return prefetch(loader(), device=run.pinlane_device if run.smoke else "cuda")

    def right(pair):
        images, labels = (part if isinstance(part, torch.Tensor) else torch.from_numpy(part.numpy()) for part in pair)
        return bool((images[:, 0, 0, 0].long() == labels).all())

    run.start_device()
    needed("pinlane.torch", "CudaPrefetcher")
    ways = {
        "CudaPrefetcher": prefetched,
        "pin_memory=True": pinned,
        "no pin_memory": pageable,
        "the loader alone": loader,
    }
    rates, errors = {name: [] for name in ways}, {}
    for turn in range(rounds):
        for name in list(ways) if turn % 2 == 0 else list(ways)[::-1]:
            if name in errors:
                continue
            try:
                rate, _ = batches_per_s(run, ways[name](), 2 * workers + 4, seconds, right)
                rates[name].append(rate)
            except Exception:
                errors[name] = traceback.format_exc()
    return {"rates": rates, "errors": errors, "batch_bytes": batch * 3 * side * side * 4}


def prefetcher(run):
    """Twice: with torch's pinned allocator as it comes, and tuned. Both processes measure all ways."""
    options = {"rounds": run.pick(3, 1), "seconds": run.pick(3.0, 0.1)}
    found = {}
    for kind, environment in (("torch as it comes", {}), ("torch tuned", {"PYTORCH_CUDA_ALLOC_CONF": TUNED})):
        with run.attempt(f"CudaPrefetcher, {kind}"):
            found[kind] = run.process("prefetcher_rates", options, environment, timeout=150)
    for kind, part in found.items():
        for name, error in part["errors"].items():
            run.row(
                f"{name} ({kind})",
                "",
                f"failed: {error.strip().splitlines()[-1]}",
                False,
                is_check=True,
                traceback=error,
            )
        for name, rates in part["rates"].items():
            if not rates:
                continue
            gb_per_s = [rate * part["batch_bytes"] / 1e9 for rate in rates]
            run.row(
                f"{name} ({kind})",
                "",
                f"{statistics.median(gb_per_s):.2f} GB/s ({min(gb_per_s):.2f} to {max(gb_per_s):.2f}), "
                f"{statistics.median(rates):.1f} batches/s of {part['batch_bytes'] / 1e6:.0f} MB",
                gb_per_s=gb_per_s,
            )
        pair = [part["rates"][name] for name in ("CudaPrefetcher", "pin_memory=True")]
        if not all(pair):
            continue
        ours, theirs = map(statistics.median, pair)
        asked = 1.3 if kind == "torch as it comes" else 1.15
        run.row(
            f"CudaPrefetcher against pin_memory=True and .cuda(non_blocking=True), {kind}",
            f"{asked}x",
            f"{ours / theirs:.2f}x",
            ours / theirs >= asked,
            ratio=ours / theirs,
        )


# --- pinlane.DataLoader -----------------------------------------------------------------------------------------


def images(run):
    """u8 images of 3x224x224 in memory, batches of 256, shuffled."""
    import numpy as np
    import torch

    data_loader = needed("pinlane", "DataLoader")
    run.start_device()
    count, side, batch = run.pick(20_000, 64), run.pick(224, 8), run.pick(256, 8)
    block = np.random.default_rng(20).integers(0, 256, (64, 3, side, side), dtype=np.uint8)
    data = np.empty((count, 3, side, side), dtype=np.uint8)  # all of it is written here
    for start in range(0, count, 64):
        part = data[start : start + 64]
        np.bitwise_xor(block[: len(part)], np.uint8(start // 64 % 251), out=part)
    labels = np.arange(count)
    tensors = torch.from_numpy(data), torch.from_numpy(labels)

    def by_torch(workers):
        loader = torch.utils.data.DataLoader(
            Samples(*tensors),
            batch_size=batch,
            shuffle=True,
            drop_last=True,
            pin_memory=not run.smoke,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
        while True:
            for pictures, numbers in loader:
                yield run.torch_upload(pictures, non_blocking=True), run.torch_upload(numbers, non_blocking=True)

    def by_pinlane(framework):
        loader = data_loader(
            (data, labels), batch, shuffle=True, drop_last=True, device=run.pinlane_device, framework=framework
        )
        while True:
            yield from loader

    def right(pair):
        pictures, numbers = (part.cpu().numpy() if isinstance(part, torch.Tensor) else part.numpy() for part in pair)
        return len(set(numbers.tolist())) == batch and np.array_equal(pictures, data[numbers])

    ways = {
        f"torch, {workers} workers": (lambda workers=workers: by_torch(workers), workers)
        for workers in run.pick((0, 4, 8, 14), (0, 2))
    }
    ways["pinlane.DataLoader"] = (lambda: by_pinlane(None), 0)
    if not run.smoke:
        ways['pinlane.DataLoader(framework="pt")'] = (lambda: by_pinlane("pt"), 0)
    rates = {name: [] for name in ways}
    for turn in range(run.pick(3, 1)):
        for name in list(ways) if turn % 2 == 0 else list(ways)[::-1]:
            if not run.has_time(15):
                continue
            with run.attempt(name):
                make_batches, workers = ways[name]
                rate, _ = batches_per_s(run, make_batches(), 2 * workers + 4, run.pick(2.5, 0.05), right)
                rates[name].append(rate * batch * data[0].nbytes / 1e9)
    for name, found in rates.items():
        if found:
            run.row(
                f"{name}, u8 images",
                "",
                f"{statistics.median(found):.2f} GB/s ({min(found):.2f} to {max(found):.2f})",
                gb_per_s=found,
            )
    best = max((statistics.median(found), name) for name, found in rates.items() if found and name.startswith("torch"))
    for name, found in rates.items():
        if found and name.startswith("pinlane"):
            faster = statistics.median(found) / best[0]
            run.row(f"{name} against the fastest of torch's ({best[1]})", "15x", f"{faster:.2f}x", faster >= 15)
    if not run.smoke and run.has_time(15):
        with run.attempt("the tool's figure"):
            report = run.tool("feed", "synthetic", "--time", "3s")
            run.row("the Rust loader by `pinlane feed synthetic`", "", f"{report['sample_gb_per_s']:.2f} GB/s")
