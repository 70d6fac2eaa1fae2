"""to_device and to_host: what goes in comes out, and what cannot is refused clearly."""

import ml_dtypes
import numpy as np
import pytest

import pinlane

ARRAYS = {
    "two axes": np.arange(12.0).reshape(3, 4),
    "transposed": np.arange(12.0).reshape(3, 4).T,
    "Fortran order": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "every second": np.arange(10)[::2],
    "backwards": np.arange(10)[::-1],
    "no axes": np.array(3.5, "f4"),
    "no elements": np.zeros((0, 3)),
    "bool": np.array([True, False, True]),
    "complex": np.array([1 + 2j, 3]),
    "half": np.arange(5, dtype="f2"),
    "bytes": np.arange(256, dtype="u1"),
    "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
    "float8": np.arange(5).astype(ml_dtypes.float8_e4m3fn),
    "large": np.arange(3 << 20, dtype="f4"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_what_goes_in_comes_out(gpu, name):
    array = ARRAYS[name]
    on_device = pinlane.to_device(array, gpu)
    assert on_device.shape == array.shape
    assert on_device.dtype == array.dtype.name
    assert on_device.nbytes == array.nbytes
    back = pinlane.to_host(on_device)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_read_only_arrays_and_buffers_are_sources(gpu):
    array = np.arange(5)
    array.flags.writeable = False
    np.testing.assert_array_equal(pinlane.to_device(array, gpu).numpy(), array)
    for buffer in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        assert pinlane.to_device(buffer, gpu).numpy().tobytes() == b"abc"


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (np.array([object()]), TypeError, "Python objects"),
        (np.array(["text"]), TypeError, "<U4 cannot be copied"),
        (np.ones(3, "M8[s]"), TypeError, "datetime64"),
        (np.zeros(3, [("a", "f4")]), TypeError, "cannot be copied"),
        (np.ones(3, ">f4"), ValueError, "other order"),
        ([1, 2], TypeError, "not list"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_what_cannot_be_copied_is_refused(gpu, source, error, message):
    with pytest.raises(error, match=message):
        pinlane.to_device(source, gpu)


def test_out_is_filled(gpu):
    out = pinlane.to_device(np.zeros((2, 3), "f4"), gpu)
    assert pinlane.to_device(np.ones((2, 3), "f4"), out=out) is out
    host = np.zeros((2, 3), "f4")
    assert pinlane.to_host(out, out=host) is host
    assert host.sum() == 6


def test_out_that_does_not_fit_is_refused(gpu):
    out = pinlane.to_device(np.zeros((2, 3), "f4"), gpu)
    with pytest.raises(ValueError, match="shape"):
        pinlane.to_device(np.ones(6, "f4"), out=out)
    with pytest.raises(ValueError, match="on sim:h200"):
        pinlane.to_device(np.ones((2, 3), "f4"), "sim:null", out=out)
    with pytest.raises(TypeError, match="on a device"):
        pinlane.to_device(np.ones((2, 3), "f4"), out=np.zeros((2, 3), "f4"))
    read_only = np.zeros((2, 3), "f4")
    read_only.flags.writeable = False
    for host, error in [
        (np.zeros((3, 2), "f4"), "shape"),
        (np.zeros((2, 3), "f8"), "elements"),
        (np.zeros((2, 6), "f4")[:, ::2], "contiguous"),
        (read_only, "read-only"),
    ]:
        with pytest.raises(ValueError, match=error):
            pinlane.to_host(out, out=host)


@pytest.mark.parametrize(
    ("before", "after"),
    [("f4", "float16"), ("f4", "bfloat16"), ("u1", "float32"), ("f8", "float32"), ("i4", "int64")],
)
def test_dtype_converts_on_the_way(gpu, before, after):
    array = np.arange(200).astype(before)
    on_device = pinlane.to_device(array, gpu, dtype=after)
    assert on_device.dtype == after
    np.testing.assert_array_equal(on_device.numpy().astype("f8"), array.astype("f8"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *[("f4", "float16"), ("f8", "float32"), ("u1", "float32"), ("i4", "int64"), ("u2", "int32")],
        *[("?", "uint8"), ("?", "bool"), ("f4", "complex64"), ("c16", "complex64")],
    ],
)
def test_out_converts_what_fits(gpu, before, after):
    array = np.array([0, 1, 1, 0]).astype(before)
    out = pinlane.to_device(np.zeros(4, after), gpu)
    np.testing.assert_array_equal(pinlane.to_device(array, out=out).numpy(), array)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *[("f8", "uint8"), ("f4", "int64"), ("i8", "int32"), ("i1", "uint8"), ("u1", "int8")],
        *[("i4", "bool"), ("c8", "float32")],
    ],
)
def test_out_that_would_lose_something_is_refused(gpu, before, after):
    array = np.array([0, 1, 1, 0]).astype(before)
    out = pinlane.to_device(np.zeros(4, after), gpu)
    with pytest.raises(TypeError, match=f'{array.dtype.name} fits into the {after} of out; pass dtype="{after}"'):
        pinlane.to_device(array, out=out)
    if before != "c8":
        np.testing.assert_array_equal(pinlane.to_device(array, out=out, dtype=after).numpy(), array)


def test_asynchronous_copies_keep_their_source(gpu):
    stream = pinlane.Stream(gpu)
    arrays = []
    for value in range(50):
        source = pinlane.full(4096, value, "i4", device=gpu)
        arrays.append(pinlane.to_device(source, gpu, stream=stream, blocking=False))
        del source
    for value, array in enumerate(arrays):
        assert (array.numpy() == value).all()


def test_many_arrays_at_once(gpu):
    sources = [np.full(7, number, "i2") for number in range(100)]
    targets = [pinlane.to_device(np.zeros(7, "i2"), gpu) for _ in sources]
    pinlane.upload_many(sources, targets)
    for source, target in zip(sources, targets):
        np.testing.assert_array_equal(target.numpy(), source)
    with pytest.raises(ValueError, match="sources has 100 arrays, but out has 99"):
        pinlane.upload_many(sources, targets[1:])
    pinlane.upload_many([], [])


def test_errors_name_the_argument_and_what_is_wrong_with_it(gpu):
    x = np.ones(3)
    on_gpu = pinlane.to_device(x, gpu)
    other = pinlane.to_device(x, "sim:null")
    objects = np.array([None] * 3)
    for attempt, error, message in [
        # An array on the device where one in host memory is needed.
        (lambda: pinlane.to_device(on_gpu, out=on_gpu), TypeError, "in host memory is needed, this one is on sim:h200"),
        (lambda: pinlane.to_host(on_gpu, out=on_gpu), TypeError, "in host memory is needed, this one is on sim:h200"),
        (lambda: pinlane.pin(on_gpu, device=gpu), TypeError, "in host memory is needed, this one is on sim:h200"),
        (lambda: pinlane.is_pinned(on_gpu, device=gpu), TypeError, "in host memory is needed"),
        (lambda: pinlane.DataLoader(on_gpu, device=gpu), TypeError, "in host memory is needed"),
        # No arrays at all.
        (lambda: pinlane.pin([1], device=gpu), TypeError, "a NumPy array, .* is needed, not list"),
        (lambda: pinlane.is_pinned([1], device=gpu), TypeError, "a NumPy array, .* is needed, not list"),
        (lambda: pinlane.empty_like([1], device=gpu), TypeError, "an array or a tensor, not list"),
        (lambda: pinlane.to_device(x, out=5), TypeError, "out must be an array on a device, not int"),
        # Elements.
        (lambda: pinlane.pin(objects, device=gpu), TypeError, "Python objects cannot be pinned"),
        (lambda: pinlane.to_host(on_gpu, out=objects), TypeError, "Python objects cannot be copied$"),
        (lambda: pinlane.to_device(np.array(["text"]), gpu), TypeError, "elements of type <U4 cannot be copied; bool"),
        (lambda: pinlane.to_device(np.zeros(3, [("a", "f4")]), gpu), TypeError, r"type \[\('a', '<f4'\)\] cannot"),
        (lambda: pinlane.to_device(x, gpu, dtype="foo"), TypeError, "dtype must be a name .*, not 'foo'"),
        # What does not fit.
        (lambda: pinlane.to_device(np.ones(4), out=on_gpu), ValueError, r"out has the shape \(3,\), but src .* \(4,\)$"),
        (lambda: pinlane.to_device(x, other.device, out=on_gpu), ValueError, "out is on sim:h200, not on sim:null"),
        (lambda: pinlane.to_device(x, out=on_gpu, dtype="f4"), ValueError, "of float64, but dtype is float32"),
        (lambda: pinlane.upload_many(5, [on_gpu]), TypeError, "sources must be a list of arrays, not int"),
        (lambda: pinlane.upload_many([x], 5), TypeError, "out must be a list of arrays, not int"),
        (lambda: pinlane.upload_many([5], [on_gpu]), TypeError, r"sources\[0\]: .* is needed, not int"),
        (lambda: pinlane.upload_many([x], [x]), TypeError, r"out\[0\]: an array on a device is needed, not ndarray"),
        (lambda: pinlane.upload_many([np.ones(4)], [on_gpu]), ValueError, r"out\[0\] has the shape \(3,\), but"),
        (lambda: pinlane.upload_many([x.astype("f4")], [on_gpu]), ValueError, r"sources\[0\] has elements of float32"),
        (lambda: pinlane.upload_many([x, x], [on_gpu, other]), ValueError, r"out\[1\] is on sim:null, but out\[0\]"),
        (lambda: pinlane.empty((3.0,), device=gpu), TypeError, r"whole number or a tuple of them, not \(3.0,\)"),
        (lambda: pinlane.empty(None, device=gpu), TypeError, "whole number or a tuple of them, not None"),
    ]:
        with pytest.raises(error, match=message):
            attempt()


def test_bf16_is_a_name_of_bfloat16(gpu):
    assert pinlane.to_device(np.ones(3, "f4"), gpu, dtype="bf16").dtype == "bfloat16"
    assert pinlane.empty(3, "bf16", device=gpu).dtype == ml_dtypes.bfloat16


def test_reshape_shares_memory(gpu):
    array = pinlane.to_device(np.arange(6), gpu)
    assert array.reshape(2, -1).shape == (2, 3)
    assert array.reshape((3, 2)).shape == (3, 2)
    assert array.reshape(-1).address == array.address
    with pytest.raises(ValueError, match=r"6 elements cannot have the shape \(4,\)"):
        array.reshape(4)
    with pytest.raises(ValueError, match="6 elements"):
        array.reshape(-1, -1)


def test_a_simulated_array_is_no_cuda_memory(gpu):
    array = pinlane.to_device(np.arange(6), gpu)
    assert not hasattr(array, "__cuda_array_interface__")
    for export in (array.__dlpack__, array.__dlpack_device__):
        with pytest.raises(TypeError, match="simulated"):
            export()
    with pytest.raises(TypeError, match="simulated"):
        gpu.stream().__cuda_stream__()


def test_the_drivers_own_copy(gpu):
    x = np.arange(1 << 20, dtype="f4")
    out = pinlane.to_device(np.zeros_like(x), gpu)
    stream = gpu.stream()
    stream.driver_copy(x, out)
    np.testing.assert_array_equal(out.numpy(), x)
    with pytest.raises(ValueError, match="shape"):
        stream.driver_copy(x[1:], out)
    with pytest.raises(ValueError, match="elements of float32"):
        stream.driver_copy(x.astype("f8"), out)
    with pytest.raises(TypeError, match="on a device"):
        stream.driver_copy(x, x)
