#!/usr/bin/env python3
"""Writes the safetensors files that the loaders are measured on.

    make.py DIR [--small] [--check] [--again] [--threads N]

big/    two files with an index, 288 tensors, 14.06 GB of bf16: a language model of 26 layers with 4096 wide
        hidden states, as checkpoints are written (names sorted, layers split over the files).
many/   one file, 6144 tensors of 768 KiB (bf16, 384 x 1024), 4.83 GB.

The bytes are one random block of 64 MiB, repeated, each repeat and each tensor XORed with a key of its own. So any two
places differ, and a mix-up of tensors, blocks or files is seen when bytes are compared.

The format is written here by hand (8 bytes of length, JSON padded with spaces to 8, data). `--check` reads the files
back with the safetensors package and compares every byte; use it with `--small`, it needs the memory.

Files are written through the page cache and stay in it. The disk is kept busy while they are written, and fsync comes at
the end, so that the cache can be dropped afterwards. Files of an earlier call are kept unless `--again` is given; they may
be out of the cache then (`cache.py fill`).
"""

import argparse
import bisect
import concurrent.futures
import ctypes
import itertools
import json
import os
import sys
import threading
import time

import numpy

BLOCK_BYTES = 64 << 20
CHUNK_BYTES = 8 << 20
MASK = (1 << 64) - 1
START_WRITING = 2  # SYNC_FILE_RANGE_WRITE


def model_tensors(small):
    """Names and shapes of a language model with grouped attention heads, and where the second file begins."""
    layers, hidden, heads, kv_heads, head, inner, vocabulary = 26, 4096, 32, 8, 128, 16640, 151936
    if small:
        hidden, head, inner, vocabulary = 128, 4, 520, 2374
    shapes = {
        "input_layernorm.weight": [hidden],
        "mlp.down_proj.weight": [hidden, inner],
        "mlp.gate_proj.weight": [inner, hidden],
        "mlp.up_proj.weight": [inner, hidden],
        "post_attention_layernorm.weight": [hidden],
        "self_attn.k_norm.weight": [head],
        "self_attn.k_proj.weight": [kv_heads * head, hidden],
        "self_attn.o_proj.weight": [hidden, heads * head],
        "self_attn.q_norm.weight": [head],
        "self_attn.q_proj.weight": [heads * head, hidden],
        "self_attn.v_proj.weight": [kv_heads * head, hidden],
    }
    tensors = [("model.embed_tokens.weight", [vocabulary, hidden])]
    for layer in range(layers):
        tensors += [(f"model.layers.{layer}.{name}", shape) for name, shape in shapes.items()]
    tensors.append(("model.norm.weight", [hidden]))
    # The embedding is as large as two and a half layers: eleven layers go with it, fifteen into the second file.
    half = 1 + 11 * len(shapes)
    return tensors[:half], tensors[half:]


def many_tensors(small):
    """Names and shapes of a file of many tensors, all of one size."""
    count, shape = (96, [24, 64]) if small else (6144, [384, 1024])
    return [(f"experts.{i // 3:04}.{'abc'[i % 3]}_proj.weight", shape) for i in range(count)]


def tensor_bytes(shape):
    return 2 * int(numpy.prod(shape))


def mixed(number):
    """A well mixed 64-bit key (splitmix64)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


class File:
    """The plan of one file: its header, and what lies at every offset."""

    def __init__(self, path, tensors, salt, pattern):
        self.path, self.pattern, self.salt = path, pattern, salt
        header, self.starts, at = {"__metadata__": {"format": "pt"}}, [], 0
        for name, shape in sorted(tensors):
            size = tensor_bytes(shape)
            assert size % 8 == 0
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
            self.starts.append(at)
            at += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        self.head = len(text).to_bytes(8, "little") + text
        self.names = sorted(name for name, _ in tensors)
        self.data_bytes, self.file_bytes = at, len(self.head) + at

    def fill(self, words, start):
        """Puts what lies in the file from `start` on into `words` (64-bit); `start` is a multiple of 8."""
        at, end = start, min(start + 8 * len(words), self.file_bytes)
        if at < len(self.head):
            part = numpy.frombuffer(self.head[at:end], dtype=numpy.uint64)
            words[: len(part)] = part
            at += 8 * len(part)
        while at < end:
            data = at - len(self.head)
            tensor = bisect.bisect_right(self.starts, data) - 1
            inside = data - self.starts[tensor]
            limit = self.starts[tensor + 1] if tensor + 1 < len(self.starts) else self.data_bytes
            block, offset = divmod(inside, BLOCK_BYTES)
            size = min(end - at, limit - data, BLOCK_BYTES - offset)
            key = numpy.uint64(mixed(self.salt << 48 | tensor << 16 | block))
            source = self.pattern[offset // 8 : (offset + size) // 8]
            numpy.bitwise_xor(source, key, out=words[(at - start) // 8 : (at - start + size) // 8])
            at += size
        return end - start


def write(files, threads):
    """Writes all files, page by page in order, and has the disk begin at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    descriptors = []
    for file in files:
        os.makedirs(os.path.dirname(file.path), exist_ok=True)
        descriptor = os.open(file.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.posix_fallocate(descriptor, 0, file.file_bytes)
        descriptors.append(descriptor)
    # Writers of one file wait for each other in the kernel, so the files take turns.
    turns = itertools.zip_longest(*[
        [(file, descriptor, at) for at in range(0, file.file_bytes, CHUNK_BYTES)]
        for file, descriptor in zip(files, descriptors)
    ])
    jobs = [job for turn in turns for job in turn if job]
    local = threading.local()

    def job(work):
        file, descriptor, at = work
        if not hasattr(local, "words"):
            local.words = numpy.empty(CHUNK_BYTES // 8, dtype=numpy.uint64)
        size = file.fill(local.words, at)
        view, done = memoryview(local.words).cast("B")[:size], 0
        while done < size:
            done += os.pwrite(descriptor, view[done:], at + done)
        libc.sync_file_range(descriptor, at, size, START_WRITING)

    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(job, jobs):
            pass
    written = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(files)) as pool:
        list(pool.map(os.fsync, descriptors))
    synced = time.perf_counter()
    for descriptor in descriptors:
        os.close(descriptor)
    return written - began, synced - written


def check(files):
    """Reads the files back with the safetensors package and compares names and bytes."""
    import safetensors

    for file in files:
        words = numpy.empty(-(-file.file_bytes // 8), dtype=numpy.uint64)
        file.fill(words, 0)
        expected = memoryview(words).cast("B")[len(file.head) : file.file_bytes]
        with open(file.path, "rb") as opened:
            content = opened.read()
        assert content[len(file.head) :] == expected, f"{file.path}: bytes differ"
        found = dict(safetensors.deserialize(content))
        assert sorted(found) == file.names, f"{file.path}: names differ"
        seen = set()
        for start, name in zip(file.starts, file.names):
            data = found[name]["data"]
            assert found[name]["dtype"] == "BF16"
            assert bytes(data) == bytes(expected[start : start + len(data)]), f"{file.path}: {name} differs"
            seen.add(bytes(data[:64]))
        assert len(seen) == len(file.names), f"{file.path}: two tensors begin alike"
        print(f"{file.path}: {len(found)} tensors as safetensors {safetensors.__version__} reads them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--small", action="store_true", help="the same names, little data")
    parser.add_argument("--check", action="store_true", help="compare with what the safetensors package reads")
    parser.add_argument("--again", action="store_true", help="write also what is there already")
    parser.add_argument("--threads", type=int, default=min(12, os.cpu_count()))
    arguments = parser.parse_args()

    pattern = numpy.random.default_rng(20).integers(0, 1 << 64, BLOCK_BYTES // 8, dtype=numpy.uint64)
    first, second = model_tensors(arguments.small)
    folder = arguments.folder
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    files = [
        File(f"{folder}/big/{names[0]}", first, 1, pattern),
        File(f"{folder}/big/{names[1]}", second, 2, pattern),
        File(f"{folder}/many/model.safetensors", many_tensors(arguments.small), 3, pattern),
    ]
    index = {
        "metadata": {"total_size": files[0].data_bytes + files[1].data_bytes},
        "weight_map": {name: names[n] for n in (0, 1) for name in files[n].names},
    }
    stamp_path = f"{folder}/made.json"
    stamp = json.dumps({file.path: file.file_bytes for file in files})
    there = all(os.path.exists(f.path) and os.path.getsize(f.path) == f.file_bytes for f in files)
    if there and os.path.exists(stamp_path) and open(stamp_path).read() == stamp and not arguments.again:
        print(f"{folder}: already there")
    else:
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(stamp_path):
            os.remove(stamp_path)
        space = os.statvfs(folder)
        needed = sum(f.file_bytes - (os.path.getsize(f.path) if os.path.exists(f.path) else 0) for f in files)
        if space.f_bavail * space.f_frsize < needed:
            sys.exit(f"{folder}: {needed / 1e9:.1f} GB are needed, {space.f_bavail * space.f_frsize / 1e9:.1f} are free")
        written_s, synced_s = write(files, arguments.threads)
        with open(f"{folder}/big/model.safetensors.index.json", "w") as opened:
            json.dump(index, opened, indent=1)
        with open(stamp_path, "w") as opened:
            opened.write(stamp)
        print(f"written in {written_s:.1f} s, fsync in {synced_s:.1f} s more")
    for file in files:
        print(f"{file.path}: {len(file.names)} tensors, {file.data_bytes / 1e9:.3f} GB, data from {len(file.head)}")
    if arguments.check:
        check(files)


if __name__ == "__main__":
    main()
