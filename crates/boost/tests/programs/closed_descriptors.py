"""Closes descriptors that it does not know, as daemons do, and opens files of its own."""

import ctypes
import os
import sys
import tempfile

cuda = ctypes.CDLL("libcuda.so.1")
context, device = ctypes.c_void_p(), ctypes.c_uint64()
data, size = ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(device), size) == 0
assert cuda.cuMemcpyHtoD_v2(device, data, size) == 0

os.closerange(3, 256)
with tempfile.TemporaryDirectory() as folder:
    files = [os.path.join(folder, str(number)) for number in range(8)]
    for file in files:
        os.write(os.open(file, os.O_RDWR | os.O_CREAT), b"of the program")
    assert cuda.cuMemcpyDtoH_v2(data, device, size) == 0  # a place that was not seen before
    for file in files:
        with open(file, "rb") as opened:
            assert opened.read() == b"of the program", file
sys.stdout.write("untouched\n")
