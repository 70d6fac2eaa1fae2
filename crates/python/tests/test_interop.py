"""Memory shared with other libraries, on libcuda's symbols over the simulator."""

ROUND_TRIP = """
import gc, numpy as np, pinlane

class Foreign:
    '''An array of another library: its own memory, described by __cuda_array_interface__.'''
    def __init__(self, array, stream=None, strides=None, read_only=False):
        self.array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": np.dtype(array.dtype).str, "data": (array.address, read_only),
            "strides": strides, "version": 3, "stream": stream}

gpu = pinlane.device("cuda:0")
assert not gpu.simulated and gpu.ordinal == 0 and pinlane.device_names() == ["cuda:0"]
assert pinlane.device() == pinlane.device("cuda") == pinlane.device(0) == gpu
x = np.arange(3 << 18, dtype="f4").reshape(3, -1)
"""


def test_dlpack_shares_memory(on_simcuda):
    on_simcuda(
        ROUND_TRIP
        + """
array = pinlane.to_device(x)
assert array.__dlpack_device__() == (2, 0)

class Consumer:
    '''Imports a tensor by DLPack, as other libraries do, and exports it again.'''
    def __init__(self, producer, stream): self.producer, self.stream = producer, stream
    def __dlpack_device__(self): return self.producer.__dlpack_device__()
    def __dlpack__(self, *, stream=None, **arguments):
        return self.producer.__dlpack__(stream=self.stream, **arguments)

stream = gpu.stream()
for handle in (None, -1, 1, 2, stream.handle):
    np.testing.assert_array_equal(pinlane.to_host(Consumer(array, handle)), x)
out = pinlane.to_device(np.zeros_like(x))
pinlane.to_device(x, out=Consumer(out, None))
np.testing.assert_array_equal(out.numpy(), x)

capsule = array.__dlpack__(max_version=(1, 0))
assert 'dltensor_versioned' in repr(capsule)
assert '"dltensor"' in repr(array.__dlpack__())
del array; gc.collect(); del capsule   # the memory goes with the last of them

array = pinlane.to_device(x)
for arguments, error in [({"stream": 0}, ValueError), ({"stream": -7}, ValueError), ({"copy": True}, BufferError),
                         ({"dl_device": (1, 0)}, BufferError)]:
    try: array.__dlpack__(**arguments)
    except error: pass
    else: raise AssertionError(arguments)
"""
    )


def test_cuda_array_interface_shares_memory(on_simcuda):
    on_simcuda(
        ROUND_TRIP
        + """
array = pinlane.to_device(x)
interface = array.__cuda_array_interface__
assert interface["data"] == (array.address, False) and interface["shape"] == x.shape
assert interface["typestr"] == "<f4" and interface["version"] == 3 and interface["stream"] > 2

stream = gpu.stream()
for handle in (None, 1, 2, stream.handle):
    np.testing.assert_array_equal(pinlane.to_host(Foreign(array, handle)), x)
    pinlane.to_device(x + 1, out=Foreign(array, handle))
    gpu.synchronize()
    np.testing.assert_array_equal(array.numpy(), x + 1)
    pinlane.to_device(x, out=array)
    gpu.synchronize()

rows = Foreign(array, strides=(x.strides[0], 4))
np.testing.assert_array_equal(pinlane.to_host(rows), x)
for wrong, error in [(Foreign(array, strides=(4, 12)), "contiguous"), (Foreign(array, read_only=True), "read-only")]:
    try: pinlane.to_device(x, out=wrong)
    except ValueError as refused: assert error in str(refused)
    else: raise AssertionError(error)
"""
    )


def test_streams_of_others(on_simcuda):
    on_simcuda(
        ROUND_TRIP
        + """
stream = gpu.stream()
assert stream.__cuda_stream__() == (0, stream.handle)

class New:
    def __cuda_stream__(self): return (0, stream.handle)
class Old: __cuda_stream__ = (0, stream.handle)
class Torch: cuda_stream = stream.handle
class Cupy: ptr = stream.handle
class Unknown:
    def __cuda_stream__(self): return (9, 0)

for given in (New(), Old(), Torch(), Cupy(), stream, stream.handle, 1, 2, 0):
    array = pinlane.to_device(x, stream=given)
    np.testing.assert_array_equal(pinlane.to_host(array, stream=given), x)
for given, error in [(Unknown(), ValueError), ("s", TypeError), (object(), TypeError)]:
    try: pinlane.to_device(x, stream=given)
    except error: pass
    else: raise AssertionError(given)
"""
    )


def test_memory_that_others_still_copy_from_stays(on_simcuda):
    """Another library copies from pinned arrays on a stream that Pinlane does not know, while they are dropped."""
    program = (
        ROUND_TRIP
        + """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)

context, stream = ctypes.c_void_p(), ctypes.c_void_p()
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", ctypes.byref(stream), 1)   # does not wait for the default stream

SIZE = 64 << 10
targets = [pinlane.to_device(np.zeros(SIZE, "u1")) for _ in range(20)]
for round in range(25):
    for number, target in enumerate(targets):
        source = pinlane.full(SIZE, (round + number) % 251, "u1")
        call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(target.address), ctypes.c_void_p(source.ctypes.data),
             ctypes.c_size_t(SIZE), stream)
        del source   # the copy may be in flight
    call("cuStreamSynchronize", stream)
    for number, target in enumerate(targets):
        assert (target.numpy() == (round + number) % 251).all(), (round, number)
"""
    )
    for seed in range(3):
        on_simcuda(program, PINLANE_SIMCUDA_SEED=str(seed))


def test_device_memory_that_others_still_use_stays(on_simcuda):
    """The same for arrays on the device whose address another library knows."""
    program = (
        ROUND_TRIP
        + """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuStreamCreate(ctypes.byref(stream), 1)

SIZE = 64 << 10
results = [pinlane.empty(SIZE, "u1") for _ in range(20)]
for round in range(25):
    for number, result in enumerate(results):
        array = pinlane.to_device(np.full(SIZE, (round + number) % 251, "u1"))
        capsule = array.__dlpack__(stream=stream.value)
        cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(result.ctypes.data), ctypes.c_uint64(array.address),
                                  ctypes.c_size_t(SIZE), stream)
        del array, capsule
    assert cuda.cuStreamSynchronize(stream) == 0
    for number, result in enumerate(results):
        assert (result == (round + number) % 251).all(), (round, number)
"""
    )
    for seed in range(3):
        on_simcuda(program, PINLANE_SIMCUDA_SEED=str(seed))
