#!/usr/bin/env python3
"""What freed device memory does to copies that come right after, by the driver's own calls and nothing else.

Every line: 200 copies of 64 MiB from pinned memory, one stream, each between two events. A copy is slow when it takes
more than 1.35 ms; undisturbed it takes 1.2 ms.
"""

import ctypes as c
import time

MIB, GIB = 1 << 20, 1 << 30
COPY, COPIES, SLOW_MS, USUAL_MS = 64 * MIB, 200, 1.35, 1.22

cu = c.CDLL("libcuda.so.1")
pointer, size, address = c.c_void_p, c.c_size_t, c.c_uint64
ARGUMENTS = {
    "cuInit": [c.c_uint], "cuDeviceGet": [pointer, c.c_int], "cuDevicePrimaryCtxRetain": [pointer, c.c_int],
    "cuCtxSetCurrent": [pointer], "cuCtxSynchronize": [], "cuStreamCreate": [pointer, c.c_uint],
    "cuStreamSynchronize": [pointer], "cuEventCreate": [pointer, c.c_uint], "cuEventRecord": [pointer, pointer],
    "cuEventElapsedTime": [pointer, pointer, pointer], "cuMemHostAlloc": [pointer, size, c.c_uint],
    "cuMemAlloc_v2": [pointer, size], "cuMemFree_v2": [address], "cuMemsetD8_v2": [address, c.c_ubyte, size],
    "cuMemcpyHtoDAsync_v2": [address, pointer, size, pointer], "cuMemcpyDtoHAsync_v2": [pointer, address, size, pointer],
}


def call(name, *arguments):
    function = getattr(cu, name)
    function.argtypes = ARGUMENTS[name]
    result = function(*arguments)
    if result:
        raise SystemExit(f"{name}: error {result}")


def made(kind, name, *arguments):
    value = kind()
    call(name, c.byref(value), *arguments)
    return value


call("cuInit", 0)
device = made(c.c_int, "cuDeviceGet", 0)
call("cuCtxSetCurrent", made(pointer, "cuDevicePrimaryCtxRetain", device))
stream = made(pointer, "cuStreamCreate", 1)
events = [made(pointer, "cuEventCreate", 0) for _ in range(COPIES + 1)]
host = made(pointer, "cuMemHostAlloc", 4 * COPY, 0)
c.memset(host, 1, 4 * COPY)
own = made(address, "cuMemAlloc_v2", GIB).value


def allocated(gib, touched=True):
    blocks = [made(address, "cuMemAlloc_v2", GIB).value for _ in range(gib)]
    for block in blocks if touched else []:
        call("cuMemsetD8_v2", block, 7, GIB)
    call("cuCtxSynchronize")
    return blocks


def free(blocks):
    for block in blocks:
        call("cuMemFree_v2", block)


def copies(name, down=False):
    began = time.perf_counter()
    call("cuEventRecord", events[0], stream)
    for number in range(COPIES):
        on_host, on_device = host.value + number % 4 * COPY, own + number * COPY % GIB
        if down:
            call("cuMemcpyDtoHAsync_v2", on_host, on_device, COPY, stream)
        else:
            call("cuMemcpyHtoDAsync_v2", on_device, on_host, COPY, stream)
        call("cuEventRecord", events[number + 1], stream)
    call("cuStreamSynchronize", stream)
    took = time.perf_counter() - began
    times = [made(c.c_float, "cuEventElapsedTime", *pair).value for pair in zip(events, events[1:])]
    slow = [took_ms for took_ms in times if took_ms > SLOW_MS]
    each = f", {sorted(slow)[len(slow) // 2]:.2f} ms each" if slow else ""
    print(
        f"{name:44s} {COPIES * COPY / took / 1e9:5.1f} GB/s; {len(slow):3d} slow copies{each}, "
        f"{sum(slow) - USUAL_MS * len(slow):5.1f} ms lost"
    )


copies("warming up")
for turn in (1, 2):
    blocks = allocated(14)
    copies("to the device, 14 GiB held")
    free(blocks)
    copies("to the device, 14 GiB just freed")
    free(allocated(14, touched=False))
    copies("to the device, 14 GiB never touched, freed")
    free(allocated(14))
    copies("to the host, 14 GiB just freed", down=True)
    free(allocated(14))
    time.sleep(0.02)
    copies("to the device, 20 ms after 14 GiB were freed")
    free(allocated(14))
    time.sleep(0.2)
    copies("to the device, 200 ms after")
    free(allocated(84))
    copies("to the device, 84 GiB just freed")
    time.sleep(0.5)
