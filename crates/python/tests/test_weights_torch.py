"""Weights as torch tensors, on the host and, with a stand-in for torch's allocator, on a GPU."""

import json

import numpy as np
import pytest

import pinlane

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")


TENSORS = {
    "w": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "b": torch.arange(5, dtype=torch.bfloat16),
    "f8": torch.arange(5).to(torch.float8_e5m2),
    "ids": torch.arange(7),
    "none": torch.zeros((0, 3)),
    "scalar": torch.tensor(True),
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(TENSORS, path)
    return path


def same(found, expected):
    assert (found.dtype, found.shape, found.device) == (expected.dtype, expected.shape, expected.device)
    return torch.equal(found.flatten().view(torch.uint8), expected.flatten().view(torch.uint8))


def test_tensors_on_the_host(path):
    for device in ("cpu", torch.device("cpu")):
        loaded = pinlane.load_file(path, device)
        assert list(loaded) == list(safetensors_torch.load_file(path))
        assert all(same(loaded[name], tensor) for name, tensor in TENSORS.items())
    with torch.device("meta"):
        assert pinlane.load_file(path, "cpu")["w"].device.type == "cpu"


def test_dtype_and_out(path):
    loaded = pinlane.load_file(path, "cpu", dtype=torch.float16)
    assert loaded["b"].dtype == loaded["w"].dtype == torch.float16
    assert loaded["f8"].dtype == torch.float8_e5m2
    out = {name: torch.empty_like(tensor) for name, tensor in TENSORS.items()}
    loaded = pinlane.load_file(path, "cpu", out=out)
    assert all(loaded[name] is out[name] and same(out[name], tensor) for name, tensor in TENSORS.items())
    with pytest.raises(ValueError, match='tensor "b": .*float32.*bfloat16'):
        pinlane.load_file(path, "cpu", out={"b": torch.empty(5)})
    with pytest.raises(ValueError, match='tensor "w": .*contiguous'):
        pinlane.load_file(path, "cpu", out={"w": torch.empty(4, 3).T})


def test_safe_open(path):
    with pinlane.safe_open(path, framework="pt") as f:
        assert same(f.get_tensor("b"), TENSORS["b"])
        assert same(f.get_slice("w")[1:], TENSORS["w"][1:])
        column = f.get_slice("w")[:, 2]
        assert same(column, TENSORS["w"][:, 2].clone())
        assert column.untyped_storage().nbytes() == 12


def test_packed_4_bit_floats(tmp_path):
    path = tmp_path / "x.safetensors"
    tensor = torch.arange(6, dtype=torch.uint8).view(torch.float4_e2m1fn_x2).reshape(3, 2)
    safetensors_torch.save_file({"w": tensor}, path)
    loaded = pinlane.load_file(path, "cpu")["w"]
    assert loaded.dtype == tensor.dtype and loaded.shape == tensor.shape
    assert torch.equal(loaded.view(torch.uint8), tensor.view(torch.uint8))
    with pytest.raises(TypeError, match='tensor "w" has elements of type F4'):
        pinlane.load_file(path, "sim:h200")


def test_simulated_devices_have_arrays_of_our_own(path):
    loaded = pinlane.load_file(path, "sim:h200", framework="pt")
    assert all(isinstance(array, pinlane.DeviceArray) for array in loaded.values())
    np.testing.assert_array_equal(loaded["w"].numpy(), TENSORS["w"].numpy())
    with pinlane.safe_open(path, "pt", "sim:h200") as f:
        assert f.get_slice("b")[::2].numpy().tolist() == [0, 2, 4]


LIBRARY = """
    import json, sys
    import numpy as np
    import pinlane
    from pinlane import _weights

    path = sys.argv[1] if len(sys.argv) > 1 else PATH
    gpu = pinlane.device("cuda:0")
    calls = []

    class Array:
        # An array of a library with its own allocator and its own stream.
        def __init__(self, shape, dtype):
            self.memory = pinlane.to_device(np.zeros(shape, dtype), gpu)
            self.__cuda_array_interface__ = dict(self.memory.__cuda_array_interface__, stream=stream.handle)
            self.shape, self.dtype = shape, np.dtype(dtype)

    stream = gpu.stream()

    def device_memory(ordinal):
        assert ordinal == 0
        def allocate(types):
            calls.append(len(types))
            arrays = [Array(shape, dtype) for shape, dtype in types]
            gpu.synchronize()
            return arrays, [array.memory.address for array in arrays]
        return allocate, stream

    place = _weights._OnDevice(gpu, device_memory)
    files = _weights._open([path])
    names = files.names()
"""


def test_arrays_of_a_library_on_a_gpu(tmp_path, on_simcuda):
    import safetensors.numpy

    path = tmp_path / "model.safetensors"
    model = {f"w{number}": np.full((number % 5, 3), number, "f4") for number in range(100)}
    safetensors.numpy.save_file(model, path)
    printed = on_simcuda(
        f"PATH = {str(path)!r}"
        + LIBRARY.replace("\n    ", "\n")
        + """
for arrays in (place.load(files, names), dict(place.iterate(files, names, None, 1 << 16))):
    assert sorted(arrays) == sorted(names)
    for name, array in arrays.items():
        assert isinstance(array, Array)
        expected = np.full((int(name[1:]) % 5, 3), int(name[1:]), "f4")
        np.testing.assert_array_equal(array.memory.numpy(), expected)

existing = {name: Array((4, 3), "f4") for name in ("w4", "w9")}
loaded = pinlane.load_file(PATH, gpu, framework="np", out=existing)
assert loaded == existing
assert (loaded["w9"].memory.numpy() == 9).all()

rows = _weights.TensorSlice(files, place, "w4")[1:3]
assert isinstance(rows, Array) and rows.memory.numpy().tolist() == [[4] * 3] * 2
part = _weights.TensorSlice(files, place, "w4")[1:3, 0]
assert isinstance(part, Array) and part.memory.numpy().tolist() == [4, 4]

own = pinlane.load_file(PATH, gpu, framework="np")
assert isinstance(own["w7"], pinlane.DeviceArray)
assert own["w7"].__cuda_array_interface__["shape"] == (2, 3)

stopped = place.iterate(files, names, None, 1 << 16)
next(stopped)
stopped.close()
print(json.dumps(calls))
"""
    )
    calls = json.loads(printed)
    assert max(calls) > 10


def test_torch_allocates_on_the_stream_of_the_load(monkeypatch):
    """Memory asked for later is on the stream that was current at the start, whatever is current then."""
    from pinlane import _torch

    current, entered, asked = ["first"], [], []

    class Entered:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            entered.append(self.stream)

        def __exit__(self, *_):
            entered.append("left")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current[0])
    monkeypatch.setattr(torch.cuda, "stream", Entered)
    monkeypatch.setattr(_torch, "_tensors", lambda types, device: asked.append((types, str(device), list(entered))))
    allocate, stream = _torch.device_memory(1)
    assert stream == "first"
    allocate("a")
    current[0] = "second"
    allocate("b")
    assert asked == [("a", "cuda:1", []), ("b", "cuda:1", ["first"])]
    assert entered == ["first", "left"]
