"""load_file, load_files and iter_tensors: files that safetensors wrote arrive as they are."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import pinlane

TENSORS = {
    "model.layers.0.w": np.arange(12, dtype="f4").reshape(3, 4),
    "model.layers.0.b": np.arange(5, dtype="f2"),
    "model.layers.1.w": np.arange(3 << 18, dtype="f4").reshape(-1, 1024),
    "ids": np.arange(7, dtype="i8"),
    "flags": np.array([True, False]),
    "scalar": np.array(2.5),
    "none": np.zeros((0, 3), "f4"),
    "complex": np.array([1 + 2j], "c8"),
    "bytes": np.arange(256, dtype="u1"),
}
PLACES = ["sim:h200", "cpu"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(TENSORS, path, {"format": "np"})
    return path


def on_host(array):
    return array.numpy() if isinstance(array, pinlane.DeviceArray) else array


def assert_equal(loaded, expected):
    assert sorted(loaded) == sorted(expected)
    for name, array in expected.items():
        found = on_host(loaded[name])
        assert found.dtype == array.dtype and found.shape == array.shape, name
        np.testing.assert_array_equal(found, array, err_msg=name)


@pytest.mark.parametrize("place", PLACES)
def test_every_tensor_arrives(path, place):
    loaded = pinlane.load_file(path, place, framework="np")
    assert_equal(loaded, TENSORS)
    with safetensors.safe_open(path, "np") as f:
        assert list(loaded) == list(f.offset_keys())
    assert_equal(dict(pinlane.iter_tensors(path, place, framework="np")), TENSORS)


def test_paths_may_be_text_bytes_folders_indexes_and_lists(path, tmp_path):
    for one in (str(path), os.fsencode(path), tmp_path):
        assert_equal(pinlane.load_file(one, "cpu", framework="np"), TENSORS)
    other = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"more": np.ones(3)}, other)
    both = TENSORS | {"more": np.ones(3)}
    assert_equal(pinlane.load_files([path, other], "sim:h200"), both)
    assert_equal(dict(pinlane.iter_tensors([path, other], "sim:h200")), both)
    index = {"metadata": {}, "weight_map": {"ids": path.name, "more": other.name}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for one in (tmp_path, tmp_path / "model.safetensors.index.json"):
        assert sorted(pinlane.load_file(one, "cpu", framework="np")) == ["ids", "more"]
    with pytest.raises(TypeError, match="load_file takes one"):
        pinlane.load_files(str(path), "cpu")


@pytest.mark.parametrize("place", PLACES)
def test_select(path, place):
    def names(select):
        return sorted(pinlane.load_file(path, place, framework="np", select=select))

    assert names("ids") == ["ids"]
    assert names("model.layers.0.*") == ["model.layers.0.b", "model.layers.0.w"]
    assert names(["ids", "model.*.w"]) == ["ids", "model.layers.0.w", "model.layers.1.w"]
    assert names(lambda name: "s" in name and "." not in name) == ["bytes", "flags", "ids", "scalar"]
    assert names([]) == []
    with pytest.raises(ValueError, match="no tensor matches"):
        names("nothing.*")
    with pytest.raises(ValueError, match="nothing"):
        names("nothing")


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"w[0]": np.ones(1), "w0": np.ones(1)}, path)
    assert list(pinlane.load_file(path, "cpu", framework="np", select="w[0]")) == ["w[0]"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "f8", np.float32])
def test_dtype_converts_floats_only(path, place, dtype):
    to = pinlane._numpy.dtype_named(dtype)
    with np.errstate(over="ignore"):
        expected = {name: array.astype(to) if array.dtype.kind == "f" else array for name, array in TENSORS.items()}
    assert_equal(pinlane.load_file(path, place, framework="np", dtype=dtype), expected)


@pytest.mark.parametrize("place", PLACES)
def test_out_is_filled(path, place):
    names = ["model.layers.1.w", "model.layers.0.b", "none"]
    out = {name: np.full_like(TENSORS[name], 9) for name in names}
    if place != "cpu":
        out = {name: pinlane.to_device(array, place) for name, array in out.items()}
    loaded = pinlane.load_file(path, place, framework="np", out=out)
    assert list(loaded) == names
    assert all(loaded[name] is out[name] for name in names)
    assert_equal(loaded, {name: TENSORS[name] for name in names})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("name", "array", "error", "message"),
    [
        ("ids", np.zeros(6, "i8"), ValueError, "tensor \"ids\": .*shape"),
        ("ids", np.zeros(7, "f8"), ValueError, "tensor \"ids\": .*float64.*int64"),
        ("absent", np.zeros(7), KeyError, "has no tensor.*absent"),
        ("ids", "text", TypeError, "tensor \"ids\""),
    ],
)
def test_out_that_does_not_fit_is_refused(path, place, name, array, error, message):
    if place != "cpu" and isinstance(array, np.ndarray):
        array = pinlane.to_device(array, place)
    with pytest.raises(error, match=message):
        pinlane.load_file(path, place, framework="np", out={name: array})


def test_out_in_the_wrong_place_is_refused(path):
    on_device = pinlane.to_device(TENSORS["ids"], "sim:null")
    with pytest.raises(ValueError, match="tensor \"ids\": out is on sim:null, not on sim:h200"):
        pinlane.load_file(path, "sim:h200", out={"ids": on_device})
    with pytest.raises(TypeError, match="tensor \"ids\": out must be an array on a device"):
        pinlane.load_file(path, "sim:h200", out={"ids": TENSORS["ids"].copy()})
    read_only = np.zeros(7, "i8")
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pinlane.load_file(path, "cpu", framework="np", out={"ids": read_only})
    with pytest.raises(KeyError, match="no array for tensor 'bytes'"):
        pinlane.load_file(path, "cpu", framework="np", select=["ids", "bytes"], out={"ids": np.zeros(7, "i8")})


def test_arguments_are_checked(path):
    with pytest.raises(ValueError, match="framework must be"):
        pinlane.load_file(path, "cpu", framework="jax")
    with pytest.raises(ValueError, match="choose float16"):
        pinlane.load_file(path, "cpu", framework="np", dtype="int8")
    with pytest.raises(ValueError, match="CuPy"):
        pinlane.load_file(path, "cpu", framework="cupy")
    with pytest.raises(ValueError, match="device_bytes"):
        pinlane.iter_tensors(path, "sim:h200", device_bytes=0)


@pytest.mark.parametrize("place", PLACES)
def test_small_floats(tmp_path, place):
    tensors = {
        "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
        "float8": np.arange(5).astype(ml_dtypes.float8_e4m3fn),
    }
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file(tensors, path)
    assert_equal(pinlane.load_file(path, place, framework="np"), tensors)


def test_bfloat16_without_ml_dtypes_is_a_type_error(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"w": np.ones(2, ml_dtypes.bfloat16)}, path)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="NumPy has no bfloat16; install ml_dtypes"):
        pinlane.load_file(path, "cpu", framework="np")
    loaded = pinlane.load_file(path, "cpu", framework="np", dtype="f4")
    assert loaded["w"].tolist() == [1, 1]


def write_raw(path, header, data=b""):
    header = json.dumps(header).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def test_element_types_that_arrays_cannot_have(tmp_path):
    path = tmp_path / "x.safetensors"
    header = {
        "six": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]},
        "four": {"dtype": "F4", "shape": [4], "data_offsets": [3, 5]},
        "ok": {"dtype": "U8", "shape": [1], "data_offsets": [5, 6]},
    }
    write_raw(path, header, b"123456")
    for place in PLACES:
        with pytest.raises(TypeError, match="tensor \"six\" has elements of type F6_E2M3"):
            pinlane.load_file(path, place, framework="np")
        with pytest.raises(TypeError, match="torch"):
            pinlane.load_file(path, place, framework="np", select="four")
        assert list(pinlane.load_file(path, place, framework="np", select="ok")) == ["ok"]


@pytest.mark.parametrize("place", PLACES)
def test_missing_files(tmp_path, place):
    path = tmp_path / "missing.safetensors"
    for call in (
        lambda: pinlane.load_file(path, place),
        lambda: pinlane.safe_open(path, "np", place),
        lambda: pinlane.iter_tensors(path, place),
    ):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert raised.value.filename == str(path)
        assert str(raised.value) == f"[Errno 2] No such file or directory: '{path}'"


def test_an_index_that_names_a_missing_file(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "gone.safetensors"}}))
    with pytest.raises(FileNotFoundError) as raised:
        pinlane.load_file(tmp_path, "cpu")
    assert raised.value.filename == str(tmp_path / "gone.safetensors")


def test_files_that_cannot_be_read(path):
    if os.geteuid() == 0:
        pytest.skip("this user may read everything")
    path.chmod(0)
    with pytest.raises(PermissionError) as raised:
        pinlane.load_file(path, "cpu")
    assert raised.value.filename == str(path)


@pytest.mark.parametrize("place", PLACES)
def test_corrupt_files(tmp_path, place):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(b"something")
    with pytest.raises(pinlane.InvalidDataError, match="bad.safetensors"):
        pinlane.load_file(path, place)
    write_raw(path, {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234")
    with pytest.raises(pinlane.InvalidDataError, match="bad.safetensors.*\"w\""):
        pinlane.load_file(path, place)


@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_changed_after_it_was_opened(path, place):
    with pinlane.safe_open(path, "np", place) as f:
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(pinlane.InvalidDataError, match="changed"):
            f.get_tensor("ids")


def large_model(tmp_path, tensors=48, elements=1 << 16):
    path = tmp_path / "large.safetensors"
    model = {f"w{number:03}": np.full(elements, number, "f4") for number in range(tensors)}
    safetensors.numpy.save_file(model, path)
    return path, elements * 4


def test_the_window_bounds_device_memory(tmp_path):
    path, tensor_bytes = large_model(tmp_path)
    window = 4 * tensor_bytes
    gpu = pinlane.device("sim:null")
    before, most, seen = gpu.stats()["device"], 0, 0
    for name, tensor in pinlane.iter_tensors(path, gpu, device_bytes=window):
        most = max(most, gpu.stats()["device"] - before)
        assert tensor.shape == (1 << 16,)
        seen += 1
        del tensor
    assert seen == 48
    assert most <= window + 2 * tensor_bytes  # the largest tensor, and the one that the loop has
    gc.collect()
    assert gpu.stats()["device"] == before


def test_an_early_break_releases_everything(tmp_path):
    path, _ = large_model(tmp_path)
    gpu = pinlane.device("sim:h200")
    gpu.synchronize()
    before = gpu.stats()["device"]
    for window in (1 << 20, 2 << 30):
        for _name, _tensor in pinlane.iter_tensors(path, gpu, device_bytes=window):
            break
        del _tensor
        stopped = pinlane.iter_tensors(path, gpu, device_bytes=window)
        next(stopped)
        stopped.close()
        with pytest.raises(StopIteration):
            next(stopped)
        gc.collect()
        gpu.synchronize()
        assert gpu.stats()["device"] == before


def test_many_small_tensors(tmp_path):
    path = tmp_path / "small.safetensors"
    model = {f"w{number}": np.array([number, -number], "i4") for number in range(3000)}
    safetensors.numpy.save_file(model, path)
    for place in PLACES:
        assert_equal(pinlane.load_file(path, place, framework="np"), model)
        assert_equal(dict(pinlane.iter_tensors(path, place, framework="np", device_bytes=1 << 12)), model)


def test_many_threads_load_at_once(path):
    failures = []

    def load():
        try:
            for place in PLACES * 2:
                assert_equal(pinlane.load_file(path, place, framework="np"), TENSORS)
                assert_equal(dict(pinlane.iter_tensors(path, place, framework="np", device_bytes=1 << 20)), TENSORS)
        except BaseException as failure:  # noqa: BLE001 - reported below
            failures.append(failure)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_ctrl_c_ends_a_load(tmp_path):
    path, _ = large_model(tmp_path)
    program = """
        import os, signal, sys, pinlane
        # An allocation that the signal interrupts: raised where the load is, not lost in it.
        files = pinlane._native.TensorFiles([sys.argv[1]])
        gpu = pinlane.device("sim:h200")
        held = []
        def allocate(types):
            os.kill(os.getpid(), signal.SIGINT)
            arrays = [pinlane.to_device(bytes(4 << 16), gpu) for _ in types]
            held.append(len(arrays))
            return arrays, [array.address for array in arrays]
        try:
            files.load(files.names(), gpu, allocate=allocate, stream=gpu.stream()).all()
        except KeyboardInterrupt:
            print("interrupted")
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "interrupted", done.stderr
    assert done.returncode != -signal.SIGINT


def test_what_the_allocator_raises_is_raised(path):
    files = pinlane._native.TensorFiles([path])

    def allocate(types):
        raise MemoryError("no more")

    with pytest.raises(MemoryError, match="no more"):
        files.load(files.names(), "sim:h200", allocate=allocate).all()

    with pytest.raises(ValueError, match="one array per tensor"):
        files.load(files.names(), "sim:h200", allocate=lambda types: ([], [])).all()


def test_arrays_are_asked_for_in_batches(tmp_path):
    path = tmp_path / "small.safetensors"
    model = {f"w{number:04}": np.array([number], "i4") for number in range(1000)} | {"empty": np.zeros(0)}
    safetensors.numpy.save_file(model, path)
    files = pinlane._native.TensorFiles([path])
    gpu = pinlane.device("sim:h200")
    asked = []

    def allocate(types):
        asked.append(len(types))
        arrays = [pinlane.to_device(np.zeros(shape, dtype), gpu) for shape, dtype in types]
        gpu.synchronize()
        return arrays, [array.address for array in arrays]

    assert_equal(files.load(files.names(), gpu, allocate=allocate, stream=gpu.stream()).all(), model)
    assert sum(asked) == len(model)
    assert len(asked) < 30


def test_cupy_owns_its_arrays(path, on_simcuda):
    """With a stand-in for CuPy: what is asked of it, and on which stream."""
    on_simcuda(
        f"""
        import sys, types
        import numpy as np
        import pinlane

        gpu = pinlane.device("cuda:0")
        own_stream = gpu.stream()
        entered = []

        class Entered:
            def __enter__(self): entered.append(self)
            def __exit__(self, *_): entered.remove(self)

        class Stream(Entered):
            ptr = own_stream.handle

        class Device(Entered):
            def __init__(self, ordinal): assert ordinal == 0

        class Array:
            def __init__(self, shape, dtype):
                assert [type(one) for one in entered] == [Device, Stream]
                self.memory = pinlane.to_device(np.zeros(shape, dtype), gpu)
                gpu.synchronize()
                self.data = types.SimpleNamespace(ptr=self.memory.address)

        cupy = sys.modules["cupy"] = types.ModuleType("cupy")
        cupy.empty = Array
        cupy.cuda = types.SimpleNamespace(Device=Device, get_current_stream=Stream)

        expected = pinlane.load_file({str(path)!r}, "cpu", framework="np")
        loaded = pinlane.load_file({str(path)!r}, "cuda:0", framework="cupy")
        in_turn = dict(pinlane.iter_tensors({str(path)!r}, "cuda", framework="cupy", device_bytes=1 << 20))
        assert list(loaded) == list(expected) and not entered
        for name, array in expected.items():
            for found in (loaded[name], in_turn[name]):
                assert isinstance(found, Array)
                np.testing.assert_array_equal(found.memory.numpy(), array)
        """
    )


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda f: pinlane.load_file(f, "sim:h200", out=[1]), TypeError, "out must be a dict of arrays by name, not list"),
        (lambda f: pinlane.load_file(f, "sim:h200", select=5), TypeError, "select must be a name, .* not 5"),
        (lambda f: pinlane.load_file(f, "sim:h200", select=[5]), TypeError, r"select must be a name, .* not \[5\]"),
        (lambda f: pinlane.load_file("", "sim:h200"), FileNotFoundError, "No such file or directory: ''"),
        (lambda f: pinlane.load_file(f, "gpu"), pinlane.NoDeviceError, 'unknown device "gpu": .*; or "cpu" for host memory'),
        (lambda f: pinlane.load_file(f, "sim:h200", dtype="foo"), TypeError, "dtype must be .* not 'foo'"),
        (lambda f: pinlane.iter_tensors(f, "sim:h200", device_bytes="x"), TypeError, "device_bytes must be a whole"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, attempt, error, message):
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file({"w": np.ones(3, "f4")}, path)
    with pytest.raises(error, match=message):
        attempt(path)


def test_names_of_the_host_and_of_bfloat16(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file({"w": np.ones(3, "f4")}, path)
    loaded = pinlane.load_file(path, "cpu:0", framework="np", dtype="bf16")
    assert loaded["w"].dtype == ml_dtypes.bfloat16


def test_without_torch_the_error_names_another_framework(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "pinlane._torch", raising=False)
    monkeypatch.delattr(pinlane, "_torch", raising=False)
    with pytest.raises(ModuleNotFoundError, match='framework="np" gives arrays without it'):
        pinlane.load_file(tmp_path / "model.safetensors", "cpu")
