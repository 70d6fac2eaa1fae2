"""Typical misuse of pinned memory; the argument selects one."""

import ctypes
import sys

from cuda.bindings import driver

BYTES = 1 << 16


def check(outcome):
    """The results of a call; raises an exception with the error's name."""
    error, *results = outcome
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return results[0] if len(results) == 1 else tuple(results)


def refused(outcome, expected):
    """The call must fail, with this error."""
    assert outcome[0] == expected, outcome[0]


def refill(stream, memory, pinned):
    """Refills the buffer while its copy is in flight."""
    for value in range(4):
        ctypes.memset(pinned, value, BYTES)
        check(driver.cuMemcpyHtoDAsync(memory, pinned, BYTES, stream))
    check(driver.cuStreamSynchronize(stream))


def wrong_free(stream, memory, pinned):
    """Unregisters allocated memory."""
    not_registered = driver.CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    refused(driver.cuMemHostUnregister(pinned), not_registered)


def double_free(stream, memory, pinned):
    """Frees twice."""
    other = check(driver.cuMemHostAlloc(BYTES, 0))
    check(driver.cuMemFreeHost(other))
    refused(driver.cuMemFreeHost(other), driver.CUresult.CUDA_ERROR_INVALID_VALUE)


def wrong_base(stream, memory, pinned):
    """Unregisters by an address inside the range."""
    buffer = ctypes.create_string_buffer(BYTES)
    address = ctypes.addressof(buffer)
    check(driver.cuMemHostRegister(address, BYTES, 0))
    not_registered = driver.CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    refused(driver.cuMemHostUnregister(address + 4096), not_registered)
    check(driver.cuMemHostUnregister(address))


def leak(stream, memory, pinned):
    """Leaks pinned memory."""
    check(driver.cuMemHostAlloc(BYTES, 0))


MISTAKES = {
    "refill": refill,
    "wrong-free": wrong_free,
    "double-free": double_free,
    "wrong-base": wrong_base,
    "leak": leak,
}


def main():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    memory = check(driver.cuMemAlloc(BYTES))
    pinned = check(driver.cuMemHostAlloc(BYTES, 0))
    MISTAKES[sys.argv[1]](stream, memory, pinned)
    check(driver.cuMemFreeHost(pinned))
    check(driver.cuMemFree(memory))
    check(driver.cuStreamDestroy(stream))
    check(driver.cuDevicePrimaryCtxRelease(device))


main()
