"""safe_open: what safetensors' has, with the same results."""

import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import pinlane

TENSOR = np.arange(60, dtype="f4").reshape(5, 4, 3)
PLACES = ["sim:h200", "cpu"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    large = np.arange(3 << 16).reshape(-1, 1024)
    tensors = {"b": TENSOR, "large": large, "a": np.arange(7), "scalar": np.array(1.5), "none": np.zeros((0, 3))}
    safetensors.numpy.save_file(tensors, path, {"format": "np"})
    return path


def on_host(array):
    return array.numpy() if isinstance(array, pinlane.DeviceArray) else array


def test_names_and_metadata_are_those_of_safetensors(path, tmp_path):
    with safetensors.safe_open(path, "np") as theirs, pinlane.safe_open(path, "np") as ours:
        assert ours.keys() == theirs.keys()
        assert ours.offset_keys() == theirs.offset_keys()
        assert ours.metadata() == theirs.metadata() == {"format": "np"}
        for name in theirs.keys():
            assert ours.get_slice(name).get_shape() == theirs.get_slice(name).get_shape()
            assert ours.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()
    plain = tmp_path / "plain.safetensors"
    safetensors.numpy.save_file({"a": np.ones(1)}, plain)
    with pinlane.safe_open(plain, framework="numpy", backend="mmap") as f:
        assert f.metadata() is None
    with pytest.raises(ValueError, match="backend must be"):
        pinlane.safe_open(plain, "np", backend="tape")


@pytest.mark.parametrize("place", PLACES)
def test_tensors(path, place):
    with safetensors.safe_open(path, "np") as theirs, pinlane.safe_open(path, "np", place) as ours:
        by_name = ours.get_tensors()
        assert list(by_name) == theirs.offset_keys()
        in_turn = dict(ours.tensors())
        for name in theirs.keys():
            expected = theirs.get_tensor(name)
            for found in (ours.get_tensor(name), by_name[name], in_turn[name]):
                found = on_host(found)
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


INDEXES = [
    np.s_[:], np.s_[()], np.s_[...], np.s_[2], np.s_[-1], np.s_[1:3], np.s_[3:1], np.s_[:20], np.s_[::2], np.s_[1::3],
    np.s_[:, 1], np.s_[:, :, 1:2], np.s_[2, 1:, 0], np.s_[..., 0], np.s_[1, ...], np.s_[1, ..., 2], np.s_[1:3, :, :],
    np.s_[1, 2, 0], np.s_[..., 1:3, :], np.s_[np.int64(2), :2], np.s_[:, 2:2],
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_slices_are_those_of_the_array(path, place, index):
    with pinlane.safe_open(path, "np", place) as f:
        found = on_host(f.get_slice("b")[index])
    assert found.shape == TENSOR[index].shape
    np.testing.assert_array_equal(found, TENSOR[index])


def test_an_empty_list_selects_nothing(path):
    with pinlane.safe_open(path, "np") as f:
        assert f.get_slice("b")[[]].shape == (0, 4, 3)


def test_slices_of_tensors_without_axes_or_elements(path):
    with pinlane.safe_open(path, "np") as f:
        assert f.get_slice("scalar")[()] == 1.5
        assert f.get_slice("scalar")[...] == 1.5
        assert f.get_slice("none")[:, 1].shape == (0,)
        with pytest.raises(IndexError):
            f.get_slice("scalar")[0]


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (5, IndexError),
        (-6, IndexError),
        (np.s_[:, 4], IndexError),
        (np.s_[0, 0, 0, 0], IndexError),
        (np.s_[::-1], ValueError),
        (None, TypeError),
        ([0, 1], TypeError),
        (True, TypeError),
        (1.0, TypeError),
        ("a", TypeError),
    ],
    ids=str,
)
def test_what_cannot_be_sliced_is_refused(path, index, error):
    with pinlane.safe_open(path, "np") as f:
        with pytest.raises(error):
            f.get_slice("b")[index]


def test_slices_keep_no_other_elements(path):
    with pinlane.safe_open(path, "np") as f:
        for index in (np.s_[1:3], np.s_[:, 1]):
            assert f.get_slice("b")[index].base is None


@pytest.mark.parametrize("place", PLACES)
def test_parts_of_large_tensors(path, place):
    large = np.arange(3 << 16).reshape(-1, 1024)
    with pinlane.safe_open(path, "np", place) as f:
        for index in (np.s_[:], np.s_[20:150], np.s_[7], np.s_[:, 5:900]):
            np.testing.assert_array_equal(on_host(f.get_slice("large")[index]), large[index])


def test_small_tensors_of_types_that_the_host_lacks(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"w": np.ones(2, ml_dtypes.bfloat16)}, path)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pinlane.safe_open(path, "np", "sim:h200") as f:
        assert f.get_tensor("w").dtype == "bfloat16"


@pytest.mark.parametrize("place", PLACES)
def test_unknown_names(path, place):
    with pinlane.safe_open(path, "np", place) as f:
        for call in (f.get_tensor, f.get_slice):
            with pytest.raises(KeyError, match="model.safetensors has no tensor.*absent"):
                call("absent")


def test_a_closed_file_is_refused(path):
    with pinlane.safe_open(path, "np") as f:
        part = f.get_slice("a")
    for call in (f.keys, f.metadata, f.get_tensors, lambda: f.get_tensor("a")):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert part[2] == 2
