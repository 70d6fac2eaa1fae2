"""Arrays in pinned memory."""

import collections
import dataclasses
import gc

import ml_dtypes
import numpy as np
import pytest

import pinlane


def test_pinned_arrays_are_numpy_arrays(gpu):
    array = pinlane.empty((3, 4), "f8", device=gpu)
    assert type(array) is np.ndarray
    assert array.shape == (3, 4)
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    assert pinlane.is_pinned(array, device=gpu)
    assert pinlane.is_pinned(array[1:], device=gpu)
    assert (pinlane.zeros(5, device=gpu) == 0).all()
    assert (pinlane.full((2, 2), 7, "i4", device=gpu) == 7).all()
    like = pinlane.empty_like(np.ones((4, 5), "u1"), device=gpu)
    assert like.shape == (4, 5) and like.dtype == np.uint8


@pytest.mark.parametrize("dtype", ["?", "f2", "c16", "bfloat16", ml_dtypes.float8_e5m2, np.int16])
def test_every_element_type_but_objects(gpu, dtype):
    assert pinlane.zeros((2, 3), dtype, device=gpu).shape == (2, 3)


def test_shapes(gpu):
    assert pinlane.empty((), device=gpu).shape == ()
    assert pinlane.empty(0, device=gpu).nbytes == 0
    assert pinlane.empty(np.int64(3), device=gpu).shape == (3,)
    assert pinlane.empty([2, 3], device=gpu).shape == (2, 3)
    with pytest.raises(ValueError, match="negative"):
        pinlane.empty(-1, device=gpu)
    with pytest.raises(TypeError, match="Python objects"):
        pinlane.empty(3, "O", device=gpu)
    with pytest.raises(MemoryError):
        pinlane.empty(1 << 50, device=gpu)


def test_memory_is_freed_with_the_last_view(gpu):
    before = pinlane.stats(gpu)["pinned"]
    array = pinlane.empty(64 << 20, "u1", device=gpu)
    view = array[10:20].view("i2")
    del array
    gc.collect()
    pinlane.synchronize(gpu)
    assert pinlane.stats(gpu)["pinned"] >= before + (64 << 20)
    view[:] = 3
    del view
    pinlane.synchronize(gpu)
    assert pinlane.stats(gpu)["pinned"] == before


def test_the_limit_holds():
    gpu = pinlane.device("sim:h200")
    before = pinlane.pinned_limit()
    try:
        pinlane.set_pinned_limit(pinlane.pinned_bytes() + (64 << 20))
        with pytest.raises(pinlane.PinnedLimitError, match="budget.*raise the limit with pinlane.set_pinned_limit") as caught:
            pinlane.empty(pinlane.pinned_limit() + 1, "u1", device=gpu)
        assert isinstance(caught.value, MemoryError)
        for _ in range(10):  # each makes room for the next
            pinlane.empty(20 << 20, "u1", device=gpu)
    finally:
        pinlane.set_pinned_limit(before)
    for limit in (0, -1, 1 << 70):
        with pytest.raises(ValueError, match=f"at least one byte .*, not {limit}"):
            pinlane.set_pinned_limit(limit)
    with pytest.raises(TypeError, match="a whole number of bytes, not '1GiB'"):
        pinlane.set_pinned_limit("1GiB")


def test_pin_in_place(gpu):
    array = np.arange(1 << 20)
    pinned = pinlane.pin(array, device=gpu)
    assert pinned.array is array and pinned.is_pinned
    assert pinlane.is_pinned(array, device=gpu)
    np.testing.assert_array_equal(pinlane.to_device(array, gpu, blocking=False).numpy(), array)
    pinned.unpin()
    pinned.unpin()
    assert not pinned.is_pinned and not pinlane.is_pinned(array, device=gpu)

    with pinlane.pin(array, device=gpu) as same:
        assert same is array and pinlane.is_pinned(array, device=gpu)
    assert not pinlane.is_pinned(array, device=gpu)


def test_what_cannot_be_pinned_in_place(gpu):
    read_only = np.arange(10)
    read_only.flags.writeable = False
    for array, message in [
        (np.zeros(0), "without elements"),
        (np.arange(10)[::2], "contiguous"),
        (read_only, "read-only"),
    ]:
        with pytest.raises(ValueError, match=message):
            pinlane.pin(array, device=gpu)


def test_a_dropped_registration_ends(gpu):
    array = np.arange(1 << 20)
    pinned = pinlane.pin(array, device=gpu)
    del pinned
    pinlane.synchronize(gpu)
    assert not pinlane.is_pinned(array, device=gpu)


def test_memory_whose_registration_was_dropped_is_pinned_again(gpu):
    array = np.arange(1 << 20)
    for _ in range(20):
        pinned = pinlane.pin(array, device=gpu)
        del pinned  # ends later, on another thread
    with pinlane.pin(array, device=gpu):
        with pytest.raises(pinlane.InvalidInputError, match="pinned already"):
            pinlane.pin(array[10:20], device=gpu)


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Sample:
    image: np.ndarray
    label: int


def test_pin_memory_of_nests(gpu):
    nest = {
        "list": [np.ones(3), 1],
        "tuple": (np.zeros(2, "i2"), "text"),
        "pair": Pair(np.arange(4), None),
        "sample": Sample(np.eye(2), 5),
        "ordered": collections.OrderedDict(a=np.arange(3)),
    }
    pinned = pinlane.pin_memory(nest, device=gpu)
    assert type(pinned["ordered"]) is collections.OrderedDict
    assert type(pinned["pair"]) is Pair and pinned["pair"].right is None
    assert pinned["sample"].label == 5 and pinned["list"][1] == 1
    for array, copy in [
        (nest["list"][0], pinned["list"][0]),
        (nest["tuple"][0], pinned["tuple"][0]),
        (nest["pair"].left, pinned["pair"].left),
        (nest["sample"].image, pinned["sample"].image),
        (nest["ordered"]["a"], pinned["ordered"]["a"]),
    ]:
        assert pinlane.is_pinned(copy, device=gpu) and not pinlane.is_pinned(array, device=gpu)
        np.testing.assert_array_equal(array, copy)
