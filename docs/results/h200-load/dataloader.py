#!/usr/bin/env python3
"""How fast PyTorch's DataLoader brings images from memory to the GPU.

    dataloader.py [--device cuda|cpu] [--images 20000] [--workers 0 4 8 14] [--seconds 3] [--kernel-ms 20]

The data set is one uint8 tensor of 20,000 images of 3 x 224 x 224 (3.0 GB) in memory; an item is a view of one of them.
Batches of 256, shuffled, the last incomplete one dropped, `pin_memory=True`, persistent workers, and every batch goes
`.to("cuda", non_blocking=True)`. For each number of workers, epoch follows epoch; batches are counted for `--seconds`
after a warm-up of a second (and two batches a worker at least), and the clock stops after a synchronise. GB/s are 10^9
bytes of images a second. One batch of each is compared with the data set.

Then, with the number of workers that was best, every batch is followed by a kernel of `--kernel-ms` on the same stream,
as in a training loop that is two batches ahead of the GPU (`torch.cuda._sleep`, set after the clock of the GPU). The GPU's
idle share is 1 - (time in these kernels, by events) / (time from the first kernel's beginning to the last one's end).
0 leaves this part out.
"""

import argparse
import time
import warnings

import numpy
import torch

IMAGE = (3, 224, 224)
BATCH = 256


class Images(torch.utils.data.Dataset):
    """Images in memory; the first eight bytes of each are its number."""

    def __init__(self, count):
        image_bytes = int(numpy.prod(IMAGE))
        random = numpy.random.default_rng(20).integers(0, 256, 64 * image_bytes, dtype=numpy.uint8)
        data = numpy.empty((count, image_bytes), dtype=numpy.uint8)
        random = random.reshape(64, image_bytes)
        for start in range(0, count, 64):
            part = data[start : start + 64]
            numpy.bitwise_xor(random[: len(part)], numpy.uint8(start // 64 % 251), out=part)
        data[:, :8] = numpy.arange(count, dtype="<u8").view(numpy.uint8).reshape(count, 8)
        self.data = torch.from_numpy(data).view(count, *IMAGE)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]


def loader_of(images, workers):
    return torch.utils.data.DataLoader(
        images, batch_size=BATCH, shuffle=True, drop_last=True, pin_memory=True,
        num_workers=workers, persistent_workers=workers > 0,
    )


def endless(loader):
    """Epoch after epoch."""
    while True:
        yield from loader


def compare(images, batch):
    """Sees that every image of a batch is one of the data set, and none is there twice."""
    batch = batch.cpu()
    numbers = torch.from_numpy(batch.reshape(len(batch), -1)[:, :8].contiguous().numpy().view("<i8").reshape(-1).copy())
    assert len(set(numbers.tolist())) == len(batch) == BATCH, "an image is there twice"
    assert torch.equal(batch, images.data[numbers]), "a batch differs from the data set"


class Gpu:
    """The few calls that depend on the device; on the CPU a kernel is a pause."""

    def __init__(self, device):
        self.name, self.real = device, device == "cuda"
        torch.empty(1, device=device)
        self.synchronize()

    def synchronize(self):
        if self.real:
            torch.cuda.synchronize()

    def calibrate(self, milliseconds):
        """Finds how many cycles a kernel of so many milliseconds has, at the clock that the GPU has when busy."""
        self.cycles = int(milliseconds * 1.5e6)
        if not self.real:
            self.seconds = milliseconds / 1e3
            return
        for _ in range(12):
            torch.cuda._sleep(self.cycles)
        for _ in range(3):
            began, ended = self.kernel()
            ended.synchronize()
            self.cycles = int(self.cycles * milliseconds / began.elapsed_time(ended))

    def kernel(self):
        """Submits the kernel between two events, and returns these."""
        began, ended = self.event(), self.event()
        self.record(began)
        if self.real:
            torch.cuda._sleep(self.cycles)
        else:
            time.sleep(self.seconds)
        self.record(ended)
        return began, ended

    def event(self):
        return torch.cuda.Event(enable_timing=True) if self.real else Moment()

    def record(self, event):
        event.record()


class Moment:
    """Stands in for an event on the CPU."""

    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return (later.seconds - self.seconds) * 1e3


def warm(batches, gpu, images, workers):
    """Runs for a second, and until every worker has given two batches; compares one of them."""
    began, count = time.perf_counter(), 0
    while count < 2 * workers + 2 or time.perf_counter() - began < 1.0:
        on_gpu = next(batches).to(gpu.name, non_blocking=True)
        if count == 0:
            compare(images, on_gpu)
        count += 1
    gpu.synchronize()


def rate(images, workers, gpu, limit_s):
    """Images a second, copies only."""
    batches = endless(loader_of(images, workers))
    warm(batches, gpu, images, workers)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < limit_s:
        on_gpu = next(batches).to(gpu.name, non_blocking=True)
        count += BATCH
    gpu.synchronize()
    seconds = time.perf_counter() - began
    batches.close()
    del on_gpu
    return count / seconds


def idle(images, workers, gpu, limit_s):
    """The idle share of the GPU with a kernel a batch, the batches, and a kernel's mean time in ms."""
    batches = endless(loader_of(images, workers))
    warm(batches, gpu, images, workers)
    kernels, began = [], time.perf_counter()
    while len(kernels) < 10 or time.perf_counter() - began < limit_s:
        on_gpu = next(batches).to(gpu.name, non_blocking=True)
        kernels.append(gpu.kernel())
        if len(kernels) > 2:
            kernels[-3][1].synchronize()
    gpu.synchronize()
    batches.close()
    del on_gpu
    busy_ms = sum(began.elapsed_time(ended) for began, ended in kernels)
    whole_ms = kernels[0][0].elapsed_time(kernels[-1][1])
    return 1 - busy_ms / whole_ms, len(kernels), busy_ms / len(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 4, 8, 14])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--kernel-ms", type=float, default=20.0)
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        warnings.filterwarnings("ignore", message=".*pin_memory.*")

    image_bytes = int(numpy.prod(IMAGE))
    gpu, images = Gpu(arguments.device), Images(arguments.images)
    print(f"torch {torch.__version__}, {len(images)} images, {images.data.numel() / 1e9:.2f} GB, batches of {BATCH}", flush=True)
    rates = {}
    for workers in arguments.workers:
        rates[workers] = rate(images, workers, gpu, arguments.seconds)
        print(f"dataloader {workers:2} workers: {rates[workers] * image_bytes / 1e9:6.2f} GB/s, {rates[workers]:8.0f} images/s", flush=True)
    best = max(rates, key=rates.get)
    print(f"dataloader best: {rates[best] * image_bytes / 1e9:.2f} GB/s, {rates[best]:.0f} images/s with {best} workers", flush=True)
    if arguments.kernel_ms > 0:
        gpu.calibrate(arguments.kernel_ms)
        share, count, kernel_ms = idle(images, best, gpu, arguments.seconds)
        print(f"dataloader {best} workers with a kernel of {kernel_ms:.2f} ms a batch: GPU idle {100 * share:.1f}% ({count} batches)")


if __name__ == "__main__":
    main()
