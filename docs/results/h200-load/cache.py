#!/usr/bin/env python3
"""Puts files into the page cache or out of it, and says how much of them is there.

    cache.py drop|fill|half|status FILES…      (a folder stands for the safetensors files in it)

drop    fsync, then posix_fadvise(DONTNEED): nothing of the files is cached.
fill    reads the files that are not all cached, with several threads: all of them is cached.
half    fills the first half of every file and drops the second.
status  only looks.

All of them end with the share that is cached, as mincore says. `drop`, `fill` and `half` end with status 1 when it is more
than 1% off.
"""

import ctypes
import concurrent.futures
import glob
import mmap
import os
import sys
import threading
import time

READ_BYTES = 8 << 20
HALF_ALIGN_BYTES = 2 << 20

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def expand(paths):
    """The files that the words on the command line stand for."""
    files = []
    for path in paths:
        files += sorted(glob.glob(f"{path}/*.safetensors")) if os.path.isdir(path) else [path]
    if not files:
        sys.exit(f"no safetensors files in {' '.join(paths)}")
    for file in files:
        if not os.path.isfile(file):
            sys.exit(f"{file}: no such file")
    return files


def cached_pages(path):
    """How many pages of the file are cached, and how many it has."""
    size = os.path.getsize(path)
    pages = -(-size // mmap.PAGESIZE)
    if size == 0:
        return 0, 0
    descriptor = os.open(path, os.O_RDONLY)
    address = LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    os.close(descriptor)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap", path)
    found = ctypes.create_string_buffer(pages)
    failed = LIBC.mincore(address, size, found)
    error = ctypes.get_errno()
    LIBC.munmap(address, size)
    if failed:
        raise OSError(error, "mincore", path)
    return found.raw.count(1), pages


def cached_share(paths):
    """The share of all pages of the files that is cached, 0 to 1."""
    counts = [cached_pages(path) for path in paths]
    return sum(cached for cached, _ in counts) / max(1, sum(pages for _, pages in counts))


def drop(path, start=0, length=0):
    """Drops the range of the file (length 0: to its end) from the cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, start, length, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def drop_all(paths):
    """Drops the files; looks, and tries again where something was still in use. Returns the share that is left."""
    for attempt in range(4):
        for path in paths:
            drop(path)
        left = cached_share(paths)
        if left < 0.001:
            break
        time.sleep(0.1 * (attempt + 1))
    return left


def fill(path_ends):
    """Reads each file up to its end in the list, with several threads."""
    jobs = [(path, at, min(READ_BYTES, end - at)) for path, end in path_ends for at in range(0, end, READ_BYTES)]
    descriptors = {path: os.open(path, os.O_RDONLY) for path, _ in path_ends}
    local = threading.local()

    def job(work):
        path, at, size = work
        if not hasattr(local, "buffer"):
            local.buffer = memoryview(bytearray(READ_BYTES))
        done = 0
        while done < size:
            got = os.preadv(descriptors[path], [local.buffer[: size - done]], at + done)
            if got == 0:
                raise OSError(f"{path} became shorter")
            done += got

    with concurrent.futures.ThreadPoolExecutor(min(12, os.cpu_count())) as pool:
        for _ in pool.map(job, jobs):
            pass
    for descriptor in descriptors.values():
        os.close(descriptor)


def half_of(path):
    return os.path.getsize(path) // 2 // HALF_ALIGN_BYTES * HALF_ALIGN_BYTES


def main():
    words = sys.argv[1:]
    if len(words) < 2 or words[0] not in ("drop", "fill", "half", "status"):
        sys.exit(__doc__)
    files = expand(words[1:])
    began = time.perf_counter()
    expected = None
    if words[0] == "drop":
        drop_all(files)
        expected = 0.0
    elif words[0] == "fill":
        missing = [path for path in files if cached_share([path]) < 1]
        fill([(path, os.path.getsize(path)) for path in missing])
        expected = 1.0
    elif words[0] == "half":
        fill([(path, half_of(path)) for path in files])
        for path in files:
            drop(path, half_of(path))
        expected = sum(map(half_of, files)) / sum(map(os.path.getsize, files))
    seconds = time.perf_counter() - began
    share = cached_share(files)
    size = sum(os.path.getsize(path) for path in files)
    print(f"cache {words[0]}: {100 * share:.1f}% of {size / 1e9:.2f} GB cached, {len(files)} files ({seconds:.1f} s)")
    if expected is not None and abs(share - expected) > 0.01:
        sys.exit(f"cache {words[0]}: {100 * expected:.1f}% was wanted")


if __name__ == "__main__":
    main()
