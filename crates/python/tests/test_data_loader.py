"""DataLoader: every sample once, in the right form, resumed where it was left."""

import gc
import io
import itertools
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest
from safetensors.numpy import save_file

import pinlane

IMAGES = np.random.default_rng(1).integers(0, 256, (100, 3, 8, 8), "u1")
LABELS = np.arange(100)


def loader(dataset, batch_size=16, **arguments):
    return pinlane.DataLoader(dataset, batch_size, device="sim:h200", **arguments)


def labels_of(batches):
    return [int(label) for _, labels in batches for label in labels.numpy()]


@pytest.mark.parametrize("num_workers", [None, 0, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_sample_comes_once(num_workers, shuffle):
    batches = loader((IMAGES, LABELS), shuffle=shuffle, num_workers=num_workers)
    assert len(batches) == 7
    seen = []
    for images, labels in batches:
        labels = labels.numpy()
        assert images.shape == (len(labels), 3, 8, 8) and images.dtype == "uint8"
        np.testing.assert_array_equal(images.numpy(), IMAGES[labels])
        seen += labels.tolist()
    assert sorted(seen) == list(range(100)) and (seen == list(range(100))) != shuffle


def test_a_batch_has_the_form_of_a_sample():
    for batch in loader({"x": IMAGES, "y": LABELS}):
        assert list(batch) == ["x", "y"]
    for batch in loader(LABELS):
        assert isinstance(batch, pinlane.DeviceArray)
    for batch in loader((LABELS,)):
        assert isinstance(batch, tuple) and len(batch) == 1


def test_arrays_are_used_in_place():
    array = np.zeros((4, 2), "f4")
    batches = loader(array, batch_size=4, num_workers=0)
    for value in range(3):
        array[:] = value
        (batch,) = batches
        assert (batch.numpy() == value).all()


def test_tensors_are_arrays():
    torch = pytest.importorskip("torch")
    x = torch.arange(20, dtype=torch.bfloat16).reshape(10, 2)
    y = torch.arange(10)
    for dataset in ((x, y), torch.utils.data.TensorDataset(x, y)):
        for number, (xs, ys) in enumerate(loader(dataset, batch_size=5)):
            assert xs.dtype == "bfloat16" and xs.shape == (5, 2)
            assert ys.numpy().tolist() == list(range(number * 5, number * 5 + 5))


def test_rows_of_files(tmp_path):
    np.save(tmp_path / "x.npy", IMAGES)
    save_file({"y": LABELS}, tmp_path / "y.safetensors")
    for dataset in ([tmp_path / "x.npy", str(tmp_path / "y.safetensors")], tmp_path):
        for batch in loader(dataset, batch_size=40):
            assert list(batch) == ["x", "y"]
            np.testing.assert_array_equal(batch["x"].numpy(), IMAGES[batch["y"].numpy()])
    with pytest.raises(OSError):
        loader(tmp_path / "none.npy")


def test_files_of_archives(tmp_path):
    texts = [b"a" * n for n in (3, 0, 5, 1)]
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for number, text in enumerate(texts):
            for extension, data in (("cls", bytes([number])), ("txt", text)):
                info = tarfile.TarInfo(f"{number:04}.{extension}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    dataset = pinlane.TarDataset(tmp_path / "a.tar", {"cls": ("u1", (1,)), "txt": ("u1", 10)})
    assert len(dataset) == 4
    (batch,) = loader(dataset, batch_size=4)
    assert list(batch) == ["cls", "txt", "txt_offsets"]
    assert batch["cls"].numpy().ravel().tolist() == [0, 1, 2, 3]
    offsets = batch["txt_offsets"].numpy()
    assert offsets.tolist() == [0, 3, 3, 8, 9] and offsets.dtype == "i8"
    assert batch["txt"].numpy().tobytes() == b"".join(texts)
    short = pinlane.TarDataset([tmp_path / "a.tar"], {"txt": ("u1", 4)})
    with pytest.raises(pinlane.InvalidDataError, match="at most 4"):
        list(loader(short, batch_size=4))
    batches = iter(loader(short, batch_size=4, skip_errors=True))
    next(batches)
    assert batches.indices == [0, 1, 3] and batches.padding == 0
    [(index, reason)] = batches.skipped
    assert index == 2 and "at most 4" in reason


class Squares:
    """A dataset in Python."""

    def __init__(self, sample=lambda index: (np.full(2, index, "f4"), index * index, 0.5), length=30):
        self.sample, self.length, self.threads = sample, length, set()

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        return self.sample(index)


@pytest.mark.parametrize("num_workers", [0, 1, 4])
def test_python_datasets(num_workers):
    dataset = Squares()
    index = 0
    for x, squares, halves in loader(dataset, batch_size=7, num_workers=num_workers):
        assert (x.dtype, squares.dtype, halves.dtype) == ("float32", "int64", "float64")
        for row, square, half in zip(x.numpy(), squares.numpy(), halves.numpy()):
            assert row.tolist() == [index, index] and square == index * index and half == 0.5
            index += 1
    assert index == 30
    assert (threading.get_ident() in dataset.threads - {None}) and (len(dataset.threads) > 1) == (num_workers > 0)
    for batch in loader(Squares(lambda index: {"a": index})):
        assert list(batch) == ["a"]
    for batch in loader(Squares(lambda index: np.float32(index))):
        assert batch.dtype == "float32"


def test_exceptions_of_a_dataset_are_raised():
    def fail(index):
        if index == 11:
            raise LookupError("no such thing")
        return index

    batches = iter(loader(Squares(fail), batch_size=5, num_workers=2))
    assert [next(batches).numpy().tolist() for _ in range(2)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(LookupError, match="no such thing") as caught:
        next(batches)
    assert caught.value.__notes__ == ["raised by sample 11 of the dataset"]
    with pytest.raises(StopIteration):
        next(batches)
    assert sum(len(batch) for batch in loader(Squares(fail), batch_size=5, skip_errors=True)) == 29


@pytest.mark.parametrize(
    ("sample", "error", "message"),
    [
        (lambda index: np.zeros(1 + index // 5), ValueError, r"shape \(2,\), the first sample \(1,\)"),
        (lambda index: np.zeros(1, "f4" if index < 5 else "f8"), TypeError, "float64, the first sample of float32"),
        (lambda index: {"a": 1} if index < 5 else {"b": 1}, ValueError, "has the fields"),
        (lambda index: (1, 2) if index < 5 else (1,), ValueError, "has 1 fields"),
        (lambda index: 1 if index < 5 else "text", TypeError, "cannot be copied"),
    ],
)
def test_samples_that_differ_from_the_first_are_refused(sample, error, message):
    with pytest.raises(error, match=message):
        list(loader(Squares(sample)))


@pytest.mark.parametrize(
    ("dataset", "arguments", "error", "message"),
    [
        (5, {}, TypeError, "not int"),
        ((IMAGES, LABELS[:9]), {}, ValueError, "9 samples, the first array 100"),
        (np.float32(1), {}, ValueError, "no axes"),
        (LABELS.astype("c16"), {}, TypeError, "complex128"),
        (LABELS, {"batch_size": 0}, ValueError, "at least 1"),
        (LABELS, {"framework": "jax"}, ValueError, "framework"),
        (LABELS, {"framework": "pt"}, ValueError, "simulated"),
        (LABELS, {"rank": 1}, ValueError, "together"),
        (LABELS, {"rank": 2, "world_size": 2}, ValueError, "2"),
        (LABELS, {"prefetch": 0}, ValueError, "prefetch"),
        (LABELS, {"transforms": {"x": pinlane.Normalize([0], [1])}}, ValueError, "no field 'x'"),
        (IMAGES, {"transforms": pinlane.Normalize([0], [1])}, ValueError, "3 channels, Normalize has 1"),
        (LABELS.astype("u1"), {"transforms": pinlane.Normalize([0], [1])}, ValueError, "no axis 0"),
    ],
)
def test_what_cannot_be_loaded_is_refused(dataset, arguments, error, message):
    with pytest.raises(error, match=message):
        loader(dataset, **arguments)


@pytest.mark.parametrize("channel_axis", [0, -1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bytes_are_normalised_on_the_device(channel_axis, dtype):
    mean, std = np.array([0.4, 0.5, 0.6], "f4"), np.array([0.1, 0.2, 0.3], "f4")
    images = IMAGES if channel_axis == 0 else np.moveaxis(IMAGES, 1, -1)
    normalize = pinlane.Normalize(mean, std, channel_axis=channel_axis, dtype=dtype)
    shape = (3, 1, 1) if channel_axis == 0 else (3,)
    expected = (images / np.float32(255) - mean.reshape(shape)) / std.reshape(shape)
    tolerance = 1e-5 if dtype == "float32" else 0.05
    for x, y in loader((images, LABELS), transforms={0: normalize}):
        assert x.dtype == dtype
        np.testing.assert_allclose(x.numpy().astype("f4"), expected[y.numpy()], atol=tolerance, rtol=tolerance / 4)


def test_epochs_have_orders_of_their_own():
    batches = loader((IMAGES, LABELS), shuffle=True, seed=7)
    first, second = labels_of(batches), labels_of(batches)
    assert first != second
    batches.set_epoch(0)
    assert labels_of(batches) == first and labels_of(batches) == second
    assert labels_of(loader((IMAGES, LABELS), shuffle=True, seed=8)) != first
    assert len(labels_of(loader((IMAGES, LABELS), drop_last=True))) == 96


def test_ranks_share_the_samples(monkeypatch):
    parts = [labels_of(loader((IMAGES, LABELS), rank=rank, world_size=4)) for rank in range(4)]
    assert sorted(sum(parts, [])) == list(range(100))
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert labels_of(loader((IMAGES, LABELS))) == parts[2]
    monkeypatch.delenv("WORLD_SIZE")
    with pytest.raises(ValueError, match="WORLD_SIZE"):
        loader(LABELS)


@pytest.mark.parametrize("taken", range(8))
def test_a_state_loses_nothing_and_repeats_nothing(taken):
    make = lambda: loader((IMAGES, LABELS), shuffle=True, seed=3)  # noqa: E731
    whole = make()
    expected = labels_of(whole) + labels_of(whole)
    first = make()
    batches = iter(first)
    seen = labels_of(next(batches) for _ in range(min(taken, 7)))
    if taken > 7:
        assert next(batches, None) is None
    state = first.state_dict()
    del batches
    second = make()
    second.load_state_dict(state)
    assert second.state_dict()["epoch"] == (1 if taken >= 7 else 0)
    seen += labels_of(second)
    if taken < 7:
        seen += labels_of(second)
    assert seen == expected


def test_other_ranks_go_on_in_the_middle_of_an_epoch():
    seen, state = [], None
    for world, batch_size, batches in [(4, 3, 2), (2, 5, 1), (3, 4, 99)]:
        saved = None
        for rank in range(world):
            samples = pinlane.DataLoader(
                np.arange(100), batch_size, device="sim:h200", shuffle=True, seed=3, rank=rank, world_size=world
            )
            if state is not None:
                samples.load_state_dict(state)
            seen += [batch.numpy() for batch in itertools.islice(samples, batches)]
            saved = samples.state_dict()
        state = saved
    assert sorted(np.concatenate(seen)) == list(range(100))


def test_states_of_other_loaders_are_refused():
    batches = loader((IMAGES, LABELS), seed=1)
    batches.set_epoch(5)
    state = batches.state_dict()
    assert (state["epoch"], state["batch"]) == (5, 0)
    labels_of(batches)
    assert batches.state_dict()["batch"] == 7
    batches.set_epoch(9)
    assert batches.state_dict() == {**state, "epoch": 9}
    with pytest.raises(ValueError, match="seed"):
        loader((IMAGES, LABELS), seed=2).load_state_dict(state)
    with pytest.raises(ValueError, match='no "version"'):
        batches.load_state_dict({"epoch": 1})
    with pytest.raises(ValueError, match="version"):
        batches.load_state_dict({**state, "version": 99})


def test_an_early_end_and_another_iterator():
    batches = loader((IMAGES, LABELS), num_workers=2)
    for _ in range(20):
        for _batch in batches:
            break
    old = iter(batches)
    next(old)
    assert len(labels_of(batches)) == 100
    with pytest.raises(RuntimeError, match="newer one"):
        next(old)


def test_batches_that_are_kept_are_not_overwritten():
    batches = loader((IMAGES, LABELS), batch_size=10, num_workers=2)
    kept = [batch for _ in range(3) for batch in batches]
    assert len(kept) == 30
    for images, labels in kept:
        np.testing.assert_array_equal(images.numpy(), IMAGES[labels.numpy()])


def test_arrays_of_a_batch_are_arrays_like_others(gpu):
    (batch,) = loader(LABELS.astype("f4"), batch_size=100)
    pinlane.to_device(np.ones(100, "f4"), out=batch)
    assert (batch.numpy() == 1).all() and batch.reshape(10, 10).shape == (10, 10)
    assert pinlane.to_device(np.ones((10, 10), "f4"), out=batch.reshape(10, 10)).nbytes == 400


def test_the_dataset_lives_as_long_as_its_loader():
    array = np.arange(1000)
    batches = loader(array, batch_size=10)
    del array
    gc.collect()
    assert [int(value) for batch in batches for value in batch.numpy()] == list(range(1000))
    assert batches.stats()["samples"] == 1000


def test_exit_in_the_middle_of_an_epoch():
    program = """if True:
        import time, numpy as np, pinlane
        class Slow:
            def __len__(self): return 1000
            def __getitem__(self, index): time.sleep(0.001); return np.zeros(100)
        loaders = [pinlane.DataLoader(data, 5, device="sim:h200", num_workers=3) for data in (Slow(), np.zeros((1000, 9)))]
        iterators = [iter(loader) for loader in loaders]
        kept = [next(iterator) for iterator in iterators]
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


TORCH = """
import gc, numpy as np, pinlane
from pinlane import _torch  # needs torch itself, but no GPU of it

class Tensor:
    '''Stands for a torch tensor: it keeps the capsule, and may be copied.'''
    def __init__(self, capsule): self.capsule = capsule
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **arguments): return self.capsule

stream = pinlane.Stream("cuda:0")
_torch.current_stream = lambda ordinal: stream.handle
_torch.from_capsule = Tensor
data = np.arange(4000, dtype="f4").reshape(1000, 4)
loader = pinlane.DataLoader(data, 10, framework="pt", num_workers=2)
"""


def test_torch_tensors_share_the_memory(on_simcuda):
    pytest.importorskip("torch")
    on_simcuda(
        TORCH
        + """
for epoch in range(2):
    rows = [pinlane.to_host(tensor, stream=stream) for tensor in loader]
    np.testing.assert_array_equal(np.concatenate(rows), data)
kept = list(loader)  # memory of batches in use is not used again
del loader; gc.collect()
np.testing.assert_array_equal(np.concatenate([pinlane.to_host(tensor, stream=stream) for tensor in kept]), data)
"""
    )


def test_exported_arrays_outlive_their_loader(on_simcuda):
    on_simcuda(
        """
import gc, numpy as np, pinlane
class Consumer:
    def __init__(self, array): self.capsule = array.__dlpack__(stream=1)
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **arguments): return self.capsule
data = np.arange(4000, dtype="f4").reshape(1000, 4)
loader = pinlane.DataLoader(data, 10)
for epoch in range(2):
    rows = [pinlane.to_host(Consumer(array)) for array in loader]
    np.testing.assert_array_equal(np.concatenate(rows), data)
kept = [Consumer(array) for array in loader]
del loader; gc.collect()
np.testing.assert_array_equal(np.concatenate([pinlane.to_host(tensor) for tensor in kept]), data)
"""
    )


def test_a_batch_is_not_overwritten_while_torchs_stream_reads_it(on_simcuda):
    """Kernels on torch's stream add up batches that are dropped right after the launch. The simulator reports races."""
    pytest.importorskip("torch")
    out = on_simcuda(
        TORCH
        + '''
SAXPY = """extern "C" __global__ void pinlane_saxpy_f32(unsigned long long n, float a, const float* x, float* y) {
    unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}"""
try:
    saxpy = pinlane.compile(SAXPY).kernel("pinlane_saxpy_f32")
except pinlane.NotSupportedError as error:
    print("skipped:", error)
    raise SystemExit
data = np.ones((200, 4096), "f4")
data *= np.arange(200)[:, None]
loader = pinlane.DataLoader(data, 10, framework="pt", num_workers=1, prefetch=1)
sums, others = (pinlane.to_device(np.zeros(elements, "f4")) for elements in (40960, 8 << 20))
for tensor in loader:
    for _ in range(2):  # torch's stream is far behind the loader
        saxpy(32768, 256, others.size, 1.0, others, others, stream=stream)
    saxpy(160, 256, 40960, 1.0, tensor, sums, stream=stream)
    del tensor
expected = data.reshape(20, 40960).sum(axis=0)
np.testing.assert_array_equal(pinlane.to_host(sums, stream=stream), expected)
'''
    )
    if out.startswith("skipped"):
        pytest.skip(out)


def test_a_dataset_without_samples_has_no_batches():
    for dataset in (np.zeros((0, 3)), Squares(length=0), []):
        for transforms in (None, pinlane.Normalize([0], [1])):
            empty = loader(dataset, transforms=transforms)
            assert len(empty) == 0 and list(empty) == []


class Damaged:
    """A dataset whose samples up to a number cannot be read."""

    def __init__(self, damaged, length=200):
        self.damaged, self.length = damaged, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index < self.damaged:
            raise OSError(f"sample {index} is damaged")
        return index


def test_skipped_errors_of_the_first_samples():
    batches = iter(loader(Damaged(4), batch_size=3, skip_errors=True))
    lengths = []
    for batch in batches:
        lengths.append(len(batch))
    assert lengths == [0, 2] + [3] * 64 + [2]
    with pytest.raises(OSError, match="sample 0 is damaged"):
        loader(Damaged(1))
    with pytest.raises(OSError, match="sample 0 is damaged"):
        loader(Damaged(200), skip_errors=True)


NORMALIZE = pinlane.Normalize([0.5] * 3, [1] * 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, not 0"),
        ({"batch_size": "x"}, TypeError, "batch_size must be a whole number, not 'x'"),
        ({"batch_size": None}, TypeError, "batch_size must be a whole number, not None"),
        ({"batch_size": 1 << 70}, ValueError, "batch_size must be at most"),
        ({"num_workers": -1}, ValueError, "num_workers must be at least 0, not -1"),
        ({"num_workers": 1000}, ValueError, "num_workers must be at most 256, not 1000"),
        ({"prefetch": 0}, ValueError, "prefetch must be at least 1, not 0"),
        ({"pinned_bytes": -1}, ValueError, "pinned_bytes must be at least 0, not -1"),
        ({"rank": -1, "world_size": 2}, ValueError, "rank must be at least 0, not -1"),
        ({"rank": 2, "world_size": 2}, ValueError, "rank must be below world_size, which is 2, not 2"),
        ({"rank": 0, "world_size": 0}, ValueError, "world_size must be at least 1, not 0"),
        ({"rank": "a", "world_size": 2}, TypeError, "rank must be a whole number, not 'a'"),
        ({"seed": -1}, ValueError, "seed must be at least 0, not -1"),
        ({"seed": 1 << 70}, ValueError, "seed must be at most"),
        ({"shuffle": "x"}, TypeError, "shuffle must be True or False, not 'x'"),
        ({"transforms": 5}, TypeError, "transforms must be a Normalize or a dict of them by field, not int"),
        ({"transforms": {0: 5}}, TypeError, "the transform of field 0 must be a Normalize, not int"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        loader(IMAGES, **arguments)


@pytest.mark.parametrize(
    ("attempt", "error", "message"),
    [
        (lambda: pinlane.Normalize(0.5, [1]), TypeError, "mean must be a list with one number for each channel, not 0.5"),
        (lambda: pinlane.Normalize([0.5], [1, 1]), ValueError, "mean has 1 channels, but std has 2"),
        (lambda: pinlane.Normalize([0.5], [0]), ValueError, "std must not be 0"),
        (lambda: pinlane.Normalize([], []), ValueError, "mean must have a number for each channel"),
        (lambda: pinlane.Normalize([1], [1], channel_axis=0.5), TypeError, "channel_axis must be a whole number"),
        (lambda: pinlane.Normalize([1], [1], dtype="int8"), ValueError, "\"float32\" or \"bfloat16\", not 'int8'"),
        (lambda: loader(IMAGES.astype("f4"), transforms=NORMALIZE), ValueError, "takes bytes .*'0' has elements of float32"),
        (lambda: loader((IMAGES, LABELS), transforms=NORMALIZE), ValueError, r"the fields \['0', '1'\]: .* a dict"),
        (lambda: loader(IMAGES).set_epoch(-1), ValueError, "epoch must be at least 0, not -1"),
        (lambda: loader(IMAGES).set_epoch("x"), TypeError, "epoch must be a whole number, not 'x'"),
        (lambda: loader(IMAGES).load_state_dict(5), TypeError, "state must be a dict .*, not int"),
        (lambda: pinlane.TarDataset(5, {}), TypeError, "paths must be a path or a list of paths, not int"),
        (lambda: pinlane.TarDataset("a.tar", ["cls"]), TypeError, "fields must be a dict .*, not list"),
        (lambda: pinlane.TarDataset("a.tar", {5: ("u1", 1)}), TypeError, "file extensions such as 'cls', not 5"),
        (lambda: pinlane.TarDataset("a.tar", {"cls": "u1"}), TypeError, r"field 'cls' must be .* \('u1', \(1,\)\), not 'u1'"),
        (lambda: pinlane.TarDataset("a.tar", {"cls": ("u1", "x")}), TypeError, "field 'cls' must be an element type"),
        (lambda: pinlane.TarDataset("a.tar", {"cls": ("u1", -1)}), ValueError, "'cls': lengths must not be negative"),
        (lambda: pinlane.TarDataset("a.tar", {"cls": ("foo", 1)}), TypeError, "dtype must be .* not 'foo'"),
    ],
)
def test_wrong_uses_are_named(attempt, error, message):
    with pytest.raises(error, match=message):
        attempt()


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("f4"), "f4"])
def test_normalize_knows_dtypes_and_names(dtype):
    assert pinlane.Normalize([1], [1], dtype=dtype).dtype == "float32"
    assert pinlane.Normalize([1], [1], dtype="bf16").dtype == "bfloat16"


def test_states_with_wrong_values():
    for name, value, message in [
        ("epoch", "x", "\"epoch\" of the state must be a whole number from 0, not 'x'"),
        ("epoch", -1, "\"epoch\" of the state must be a whole number from 0, not -1"),
        ("shuffle", 5, "\"shuffle\" of the state must be True or False, not 5"),
        ("batch", 99, "99 completed batches"),
    ]:
        resumed = loader(IMAGES)
        with pytest.raises(ValueError, match=message):
            resumed.load_state_dict({**resumed.state_dict(), name: value})


def test_a_compressed_archive_says_so(tmp_path):
    with tarfile.open(tmp_path / "small.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("0.cls"))
    with pytest.raises(pinlane.InvalidDataError, match=r"small.tar.gz: is compressed \(gzip\); unpack it"):
        pinlane.TarDataset(tmp_path / "small.tar.gz", {"cls": ("u1", (1,))})
