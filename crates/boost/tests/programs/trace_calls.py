"""Copies by ctypes, which releases the interpreter's lock during the call."""

import ctypes
import threading

cuda = ctypes.CDLL("libcuda.so.1")
BYTES = ctypes.c_size_t(1 << 16)


def check(code):
    assert code == 0, code


def upload(device, data):
    for _ in range(3):
        check(cuda.cuMemcpyHtoD_v2(device, data, BYTES))


def main():
    context, device = ctypes.c_void_p(), ctypes.c_uint64()
    data = ctypes.create_string_buffer(BYTES.value)
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuMemAlloc_v2(ctypes.byref(device), BYTES))
    upload(device, data)

    def in_thread():
        check(cuda.cuCtxSetCurrent(context))
        check(cuda.cuMemcpyDtoH_v2(data, device, BYTES))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    check(cuda.cuMemFree_v2(device))


main()
