"""Pinned copies of arrays, tensors and nests of them."""

import sys
from collections.abc import Mapping, MutableMapping

from ._numpy import empty


def pin_memory(x, *, device=None):
    """A copy of ``x`` in pinned memory: an array, a tensor, or a nest of dicts, lists, tuples, named tuples and dataclasses.

    Everything else stays as it is. Objects with a ``pin_memory`` method pin themselves. A masked array is refused: the
    copy would lose its mask.

    >>> import numpy as np, pinlane
    >>> batch = pinlane.pin_memory({"x": np.ones(3), "name": "a"}, device="sim:h200")
    >>> pinlane.is_pinned(batch["x"], device="sim:h200"), batch["name"]
    (True, 'a')
    """
    return map_arrays(x, lambda array: _pinned_copy(array, device), _pinned_by_itself)


#: Classes of objects that are neither arrays nor hold any: most of what is in a batch besides arrays.
_PLAIN = (str, bytes, int, float, bool, type(None))


def map_arrays(x, function, objects=None):
    """Calls ``function`` with every array and tensor in ``x``, and returns a nest of the results.

    ``objects`` is called with everything else but plain containers and values. What it returns is the result, unless
    that is ``NotImplemented``.
    """
    kind = type(x)
    if kind in _PLAIN:
        return x
    if is_array(x):
        return function(x)
    if objects is not None and kind not in (dict, list, tuple):
        result = objects(x)
        if result is not NotImplemented:
            return result
    if isinstance(x, Mapping):
        return _rebuilt(x, {key: map_arrays(value, function, objects) for key, value in x.items()})
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*(map_arrays(value, function, objects) for value in x))
    if isinstance(x, (tuple, list)):
        return _rebuilt(x, [map_arrays(value, function, objects) for value in x])
    if is_dataclass(x):
        return _mapped_dataclass(x, lambda value: map_arrays(value, function, objects))
    return x


def _mapped_dataclass(x, function):
    """A copy of a dataclass with other values, frozen or not, also of fields that its constructor does not take."""
    import copy
    import dataclasses  # takes longer to import than the rest of the package

    mapped = copy.copy(x)
    for field in dataclasses.fields(x):
        if hasattr(x, field.name):
            object.__setattr__(mapped, field.name, function(getattr(x, field.name)))
    return mapped


def is_dataclass(x):
    """Whether this is an object of a dataclass."""
    return hasattr(type(x), "__dataclass_fields__")


def _pinned_by_itself(x):
    """``x.pin_memory()`` if it has that and is no container; containers are pinned item by item."""
    if isinstance(x, (Mapping, tuple, list, type)) or is_dataclass(x):
        return NotImplemented
    return x.pin_memory() if callable(getattr(x, "pin_memory", None)) else NotImplemented


def is_array(x):
    """Whether this is a NumPy array or a torch tensor."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (numpy is not None and isinstance(x, numpy.ndarray)) or (torch is not None and isinstance(x, torch.Tensor))


def _rebuilt(x, values):
    """Values in a container of the same class as ``x``, if it can be made from them, else in a plain one."""
    if type(x) in (dict, list):
        return values
    if isinstance(x, MutableMapping):
        # A copy keeps what else it holds: the encodings of a BatchEncoding, the factory of a defaultdict.
        import copy

        rebuilt = copy.copy(x)
        rebuilt.update(values)
        return rebuilt
    try:
        return type(x)(values)
    except TypeError:
        return values


def _pinned_copy(array, device):
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        if array.dtype.hasobject:
            return array
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise TypeError("a masked array cannot be pinned; fill it first: array.filled(value)")
        copy = empty(array.shape, array.dtype, device=device)
        copy[...] = array
        return copy
    if array.device.type != "cpu" or array.layout != torch.strided or array.is_quantized:
        return array
    # Torch takes memory of NumPy's, as bytes: NumPy does not know all of its element types.
    memory = torch.from_numpy(empty(array.numel() * array.element_size(), "u1", device=device))
    copy = memory.view(array.dtype).view(array.shape)
    return copy.copy_(array.detach())
