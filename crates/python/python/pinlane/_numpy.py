"""NumPy arrays in pinned memory. NumPy is imported at the first call."""

import operator
import sys

from ._native import PinnedMemory


def empty(shape, dtype="f4", *, device=None):
    """A NumPy array in pinned memory, with unspecified contents.

    Copies from and to it are direct, and asynchronous where the library that copies wants them to be. Its memory is
    freed when the last view of it is gone and all copies on the device are done.

    >>> import pinlane
    >>> x = pinlane.empty((2, 3), "f8", device="sim:h200")
    >>> x.shape, x.dtype, pinlane.is_pinned(x, device="sim:h200")
    ((2, 3), dtype('float64'), True)
    """
    import numpy as np

    dtype = dtype_named(dtype)
    if dtype.hasobject:
        raise TypeError("an array of Python objects cannot lie in pinned memory")
    shape = _shape(shape)
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size > sys.maxsize:
        raise MemoryError(f"an array of the shape {shape} is too large")
    memory = PinnedMemory(size, device)
    return np.ndarray(shape, dtype, memory)


def zeros(shape, dtype="f4", *, device=None):
    """A NumPy array of zeros in pinned memory.

    >>> import pinlane
    >>> pinlane.zeros(3, "i4", device="sim:h200")
    array([0, 0, 0], dtype=int32)
    """
    array = empty(shape, dtype, device=device)
    flat_bytes(array)[...] = 0
    return array


def full(shape, value, dtype="f4", *, device=None):
    """A NumPy array in pinned memory, filled with a value.

    >>> import pinlane
    >>> pinlane.full(3, 7, "u1", device="sim:h200")
    array([7, 7, 7], dtype=uint8)
    """
    array = empty(shape, dtype, device=device)
    array[...] = value
    return array


def empty_like(array, *, device=None):
    """A NumPy array in pinned memory with the shape and element type of another array or tensor.

    >>> import numpy as np, pinlane
    >>> pinlane.empty_like(np.ones((4, 5)), device="sim:h200").shape
    (4, 5)
    """
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise TypeError(f"array must be an array or a tensor, not {type(array).__name__}")
    return empty(tuple(array.shape), array.dtype, device=device)


def pageable(shape, dtype):
    """A NumPy array in ordinary memory."""
    import numpy as np

    return np.empty(shape, dtype_named(dtype))


def host_arrays(types):
    """Arrays of these shapes and element types in ordinary memory, and their addresses."""
    import numpy as np

    empty, dtypes = np.empty, {}
    arrays = []
    for shape, name in types:
        dtype = dtypes.get(name)
        if dtype is None:
            dtype = dtypes[name] = dtype_named(name)
        arrays.append(empty(shape, dtype))
    return arrays, [array.ctypes.data for array in arrays]


def dtype_named(dtype):
    """The NumPy dtype of a dtype, a name, or a torch dtype; bfloat16 and float8 are those of ml_dtypes."""
    import numpy as np

    if type(dtype).__module__ == "torch":
        dtype = str(dtype).removeprefix("torch.")
    if dtype == "bf16":
        dtype = "bfloat16"
    if isinstance(dtype, str) and (dtype == "bfloat16" or dtype.startswith("float8_")):
        try:
            import ml_dtypes
        except ImportError:
            message = f"NumPy has no {dtype}; install ml_dtypes for it, or use torch"
            raise TypeError(message) from None
        return np.dtype(getattr(ml_dtypes, dtype))
    if dtype == "float4_e2m1fn_x2":
        raise TypeError("NumPy has no float4_e2m1fn_x2; use torch")
    return np.dtype(dtype)


def flat_bytes(array):
    """The memory of a contiguous array as bytes, whatever its elements."""
    import numpy as np

    if array.dtype.hasobject:
        raise TypeError("an array of Python objects cannot be pinned")
    if array.flags.f_contiguous:
        array = array.T
    if not array.flags.c_contiguous:
        raise ValueError("the array must be contiguous")
    return array.reshape(-1).view(np.uint8)


def byte_bounds(array):
    """The addresses of the first byte of an array, and behind its last one."""
    low = high = array.__array_interface__["data"][0]
    if array.size == 0:
        return low, low
    for length, stride in zip(array.shape, array.strides):
        reach = (length - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def _shape(shape):
    try:
        if hasattr(shape, "__index__"):
            shape = (shape,)
        lengths = tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(f"a shape must be a whole number or a tuple of them, not {shape!r}") from None
    shape = lengths
    if any(length < 0 for length in shape):
        raise ValueError(f"negative lengths are not allowed: {shape}")
    return shape
