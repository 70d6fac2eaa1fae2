"""A correct program: pinned and registered memory, asynchronous copies in both directions, events."""

import ctypes
import mmap

from cuda.bindings import driver

BYTES = 1 << 20


def check(outcome):
    """The results of a call; raises an exception with the error's name."""
    error, *results = outcome
    if error != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(error)
        raise RuntimeError(name.decode())
    return results[0] if len(results) == 1 else tuple(results)


def round_trip(source, target, device, stream):
    """Copies source to the device and back to target, timed."""
    start, end = check(driver.cuEventCreate(0)), check(driver.cuEventCreate(0))
    check(driver.cuEventRecord(start, stream))
    check(driver.cuMemcpyHtoDAsync(device, source, BYTES, stream))
    check(driver.cuMemcpyDtoHAsync(target, device, BYTES, stream))
    check(driver.cuEventRecord(end, stream))
    check(driver.cuEventSynchronize(end))
    elapsed_ms = check(driver.cuEventElapsedTime(start, end))
    check(driver.cuEventDestroy(start))
    check(driver.cuEventDestroy(end))
    return elapsed_ms


def main():
    check(driver.cuInit(0))
    assert check(driver.cuDriverGetVersion()) == 13000
    device = check(driver.cuDeviceGet(0))
    assert b"Simulated" in check(driver.cuDeviceGetName(128, device))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    memory = check(driver.cuMemAlloc(BYTES))

    # Pinned memory up, registered memory down.
    pinned = check(driver.cuMemHostAlloc(BYTES, driver.CU_MEMHOSTALLOC_PORTABLE))
    ctypes.memset(pinned, 0x5A, BYTES)
    buffer = mmap.mmap(-1, BYTES)
    view = (ctypes.c_ubyte * BYTES).from_buffer(buffer)
    registered = ctypes.addressof(view)
    check(driver.cuMemHostRegister(registered, BYTES, 0))
    assert round_trip(pinned, registered, memory, stream) >= 0
    assert bytes(view) == b"\x5a" * BYTES

    # Registered memory up, ordinary memory down, on the default stream.
    ctypes.memset(registered, 0xC3, BYTES)
    ordinary = ctypes.create_string_buffer(BYTES)
    round_trip(registered, ctypes.addressof(ordinary), memory, driver.CUstream(0))
    assert ordinary.raw == b"\xc3" * BYTES

    # In stream order.
    scratch = check(driver.cuMemAllocAsync(BYTES, stream))
    check(driver.cuMemsetD32Async(scratch, 0x01020304, BYTES // 4, stream))
    check(driver.cuMemcpyDtoHAsync(pinned, scratch, BYTES, stream))
    check(driver.cuMemFreeAsync(scratch, stream))
    check(driver.cuStreamSynchronize(stream))
    assert ctypes.string_at(pinned, BYTES) == b"\x04\x03\x02\x01" * (BYTES // 4)

    check(driver.cuMemHostUnregister(registered))
    check(driver.cuMemFreeHost(pinned))
    check(driver.cuMemFree(memory))
    check(driver.cuStreamDestroy(stream))
    check(driver.cuDevicePrimaryCtxRelease(device))


main()
