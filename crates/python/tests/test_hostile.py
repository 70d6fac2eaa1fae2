"""Arrays that do not behave, and work that is not ordered by itself."""

import ctypes
import dataclasses
import multiprocessing
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import pinlane

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


def test_a_full_device_does_not_deadlock(tmp_path):
    """A copy that needs memory waits for memory that is being released, whose owners may need the interpreter."""
    profile = (REPOSITORY / "crates/model/profiles/pcie3-x16.toml").read_text()
    small = tmp_path / "small.toml"
    small.write_text(profile.replace("memory_bytes = 17_179_869_184", "memory_bytes = 104_857_600"))
    program = """
import sys, numpy as np, pinlane
gpu = pinlane.device("sim:" + sys.argv[1])
rows = np.zeros(60 << 20, "u1")
kept = pinlane.to_device(rows, gpu)
refused = 0
for _ in range(200):
    pinlane.pin(np.ones(1 << 16, "u1"), device=gpu)   # dropped at once: queued for release
    try: pinlane.to_device(rows, gpu)
    except pinlane.OutOfMemoryError: refused += 1
assert refused == 200
"""
    command = [sys.executable, "-c", program, str(small)]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sizes_that_overflow_are_refused(gpu):
    array = pinlane.to_device(np.zeros(8), gpu)
    empty = pinlane.to_device(np.zeros(0), gpu)
    for shape in [(1 << 62, 4), (1 << 32, 1 << 32), (-1, 1 << 63 - 1)]:
        with pytest.raises(ValueError, match="8 elements"):
            array.reshape(shape)
    for shape in [(1 << 32, 1 << 32), (0, 1 << 62, 1 << 62)]:
        with pytest.raises(ValueError, match="0 elements"):
            empty.reshape(shape)
    with pytest.raises(MemoryError):
        pinlane.empty((1 << 40, 1 << 40), device=gpu)
    for shape in [3.7, "33", (2, 3.5)]:
        with pytest.raises(TypeError):
            pinlane.empty(shape, device=gpu)


def test_is_pinned_asks_about_the_array_itself(gpu):
    pinned = pinlane.empty((64, 64), device=gpu)
    for view in (pinned.T, pinned[:, ::2], pinned[::-1], pinned[3:5]):
        assert pinlane.is_pinned(view, device=gpu)
    assert pinlane.is_pinned(pinlane.empty(3, ">f4", device=gpu), device=gpu)
    assert pinlane.is_pinned(pinlane.zeros(3, "S5", device=gpu), device=gpu)
    assert not pinlane.is_pinned(np.ones((64, 64)).T, device=gpu)


def test_part_of_a_source_is_pinned(gpu):
    array = np.arange(1 << 16)
    with pinlane.pin(array[: 1 << 12], device=gpu):
        copy = pinlane.to_device(array, gpu, blocking=False)
        np.testing.assert_array_equal(copy.numpy(), array)


def test_pin_takes_every_contiguous_array(gpu):
    for array in (
        np.asfortranarray(np.ones((64, 3))),
        np.zeros(100, [("a", "f4"), ("b", "i8")]),
        np.ones(1000, ">f4"),
        np.ones(1000, ml_dtypes.bfloat16),
        np.array(1.0),
    ):
        with pinlane.pin(array, device=gpu):
            assert pinlane.is_pinned(array, device=gpu)
    growing = bytearray(1 << 20)
    with pinlane.pin(growing, device=gpu), pytest.raises(BufferError):
        growing.clear()


def test_buffers_of_all_kinds(gpu):
    for buffer in ((ctypes.c_float * 3)(1, 2, 3), multiprocessing.RawArray("f", [1, 2, 3])):
        np.testing.assert_array_equal(pinlane.to_device(buffer, gpu).numpy(), [1, 2, 3])
    released = memoryview(b"abc")
    released.release()
    with pytest.raises(ValueError, match="released"):
        pinlane.to_device(released, gpu)

    class Interface:
        array = np.arange(3.0)
        __array_interface__ = array.__array_interface__

    np.testing.assert_array_equal(pinlane.to_device(Interface(), gpu).numpy(), [0, 1, 2])

    class Dlpack:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    strided = np.arange(10.0)[::2]
    np.testing.assert_array_equal(pinlane.to_device(Dlpack(strided), gpu).numpy(), strided)
    np.testing.assert_array_equal(pinlane.to_device(Dlpack(strided), gpu, dtype="f2").numpy(), strided)


def test_what_would_lose_something_is_refused(gpu):
    with pytest.raises(TypeError, match="masked"):
        pinlane.to_device(np.ma.masked_array([1, 2], [True, False]), gpu)
    with pytest.raises(TypeError, match="masked"):
        pinlane.pin_memory({"x": np.ma.masked_array([1, 2], [True, False])}, device=gpu)
    array = pinlane.to_device(np.ones(3), gpu)
    with pytest.raises(TypeError, match=r"array.numpy\(\)"):
        np.asarray(array)
    with pytest.raises(TypeError, match="on sim:h200 already"):
        pinlane.to_device(array, gpu)


def test_the_stream_names_the_device(gpu):
    assert pinlane.to_device(np.ones(3), stream=gpu.stream()).device == gpu


def test_finished_copies_make_room_for_others():
    program = """
import numpy as np, pinlane
gpu = pinlane.device("sim:h200")
target = pinlane.to_device(np.zeros(16 << 20, "u1"), gpu)
pinlane.set_pinned_limit(pinlane.pinned_bytes() + (40 << 20))
for value in range(10):
    pinlane.to_device(pinlane.full(16 << 20, value, "u1", device=gpu), out=target, blocking=False)
assert (target.numpy() == 9).all()
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=120, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: np.ndarray
    computed: np.ndarray = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "computed", self.x + 1)


def test_pin_memory_keeps_the_rest(gpu):
    objects = np.array([object()])
    pinned = pinlane.pin_memory([objects, Frozen(np.ones(3))], device=gpu)
    assert pinned[0] is objects
    assert pinlane.is_pinned(pinned[1].x, device=gpu) and pinlane.is_pinned(pinned[1].computed, device=gpu)
    np.testing.assert_array_equal(pinned[1].computed, [2, 2, 2])


class TestTorch:
    torch = pytest.importorskip("torch")

    def test_tensors_without_memory(self, gpu):
        tensor = self.torch.ones(1 << 20)
        tensor.untyped_storage().resize_(0)  # what FSDP does to parameters that it parks
        with pytest.raises(ValueError, match="no memory"):
            pinlane.to_device(tensor, gpu)

    def test_a_tensor_that_is_given_other_memory_in_flight(self, gpu):
        tensor = self.torch.arange(1 << 20)
        pinned = pinlane.pin(tensor, device=gpu)
        copy = pinlane.to_device(tensor, gpu, blocking=False)
        tensor.data = self.torch.empty(0)
        np.testing.assert_array_equal(copy.numpy(), np.arange(1 << 20))
        pinned.unpin()

    def test_autograd_sees_that_a_tensor_was_filled(self, gpu):
        tensor = self.torch.zeros(3)
        before = tensor._version
        pinlane.to_host(pinlane.to_device(np.ones(3, "f4"), gpu), out=tensor)
        assert tensor._version > before

    def test_pinned_copies_have_no_history(self, gpu):
        pinned = pinlane.pin_memory(self.torch.ones(3, requires_grad=True), device=gpu)
        assert pinned.grad_fn is None


ORDER = """
import ctypes, numpy as np, pinlane
cuda = ctypes.CDLL("libcuda.so.1")
context, other = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cuda.cuCtxSetCurrent(context)
cuda.cuStreamCreate(ctypes.byref(other), 1)
SIZE = 1 << 20
ones = pinlane.full(SIZE, 1, "u1")

def foreign(array, stream=None):
    class Foreign:
        __cuda_array_interface__ = {"shape": array.shape, "typestr": "|u1", "data": (array.address, False),
                                    "strides": None, "version": 3, "stream": stream}
    return Foreign()

def write_on(stream, array):   # what another library does with its memory
    assert cuda.cuMemcpyHtoDAsync_v2(ctypes.c_uint64(array.address), ctypes.c_void_p(ones.ctypes.data),
                                     ctypes.c_size_t(SIZE), stream) == 0

def read_on(stream, array):
    result = pinlane.zeros(SIZE, "u1")
    assert cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(result.ctypes.data), ctypes.c_uint64(array.address),
                                     ctypes.c_size_t(SIZE), stream) == 0
    assert cuda.cuStreamSynchronize(stream) == 0
    return result

def new():
    array = pinlane.to_device(np.zeros(SIZE, "u1")); pinlane.synchronize(); return array
"""


@pytest.mark.parametrize("seed", range(4))
def test_order_with_libraries_that_name_no_stream(on_simcuda, seed):
    """Without a name, they mean the default stream."""
    program = """
for _ in range(5):
    array = new()
    write_on(None, array)
    assert (pinlane.to_host(foreign(array)) == 1).all(), "read before their write"
    array = new()
    pinlane.to_device(np.full(SIZE, 7, "u1"), out=foreign(array))
    assert (read_on(None, array) == 7).all(), "their read before our write"
    array = new()
    array.__dlpack__(stream=1)
    write_on(None, array)
    assert (array.numpy() == 1).all(), "our array, written by another library"
"""
    on_simcuda(ORDER + program, PINLANE_SIMCUDA_SEED=str(seed))


@pytest.mark.parametrize("seed", range(4))
def test_order_with_several_libraries(on_simcuda, seed):
    program = """
class ByDlpack:   # a library whose streams nobody can name
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, **arguments): return self.array.__dlpack__(**arguments)

for _ in range(5):
    array = new()
    pinlane.to_device(np.full(SIZE, 7, "u1"), out=ByDlpack(array))
    assert (read_on(other, array) == 7).all(), "DLPack"
    ours, theirs = new(), new()
    write_on(other, theirs)
    pinlane.upload_many([np.full(SIZE, 7, "u1")] * 2, (ours, foreign(theirs, other.value)))
    assert (read_on(other, theirs) == 7).all() and (ours.numpy() == 7).all(), "upload_many"
"""
    on_simcuda(ORDER + program, PINLANE_SIMCUDA_SEED=str(seed))


def test_every_name_of_a_device_is_the_same_device(on_simcuda):
    program = """
import pinlane
assert pinlane.device("cuda:0") == pinlane.device("cuda:00") == pinlane.device("auto") == pinlane.device()
pinlane.to_device(b"abc", "cuda:00", stream=pinlane.device("cuda").stream())
"""
    on_simcuda(program)
