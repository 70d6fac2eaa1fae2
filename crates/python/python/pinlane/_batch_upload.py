"""Batches to a device: where their memory comes from, and how copies and the consumer are ordered.

``upload`` is the same for every device. What differs is in two small classes: ``TorchTarget`` for GPUs, whose memory,
streams and events are torch's, and ``SimulatedTarget``.
"""

import sys
import threading
from collections.abc import Mapping
from contextlib import nullcontext

from . import _native
from ._pin_memory import is_dataclass, map_arrays

#: Arrays up to this size are copied together.
SMALL_BYTES = 1 << 20


class DeviceBatch:
    """A batch on the device, perhaps still being copied, and what the consumer needs to use it safely."""

    def __init__(self, value):
        self.value = value
        #: Tensors, and objects that hold tensors, whose memory the consumer's stream is going to use.
        self.memory = []
        #: Whether ``value`` has objects that move themselves on the consumer's stream.
        self.has_deferred = False
        #: Done when all copies are.
        self.copied = None


class Deferred:
    """An object that moves itself when the consumer gets it."""

    def __init__(self, value):
        self.value = value


def upload(batch, target):
    """Copies all arrays and tensors of a batch to the device. Returns when the batch may be changed or freed."""
    moved = DeviceBatch(None)
    pieces = []

    def array_on_device(array):
        place = target.place_for(array)
        if place is None:
            return array
        source, out, result = place
        if source is None:
            return move_itself(result)
        if source.nbytes > 0:
            pieces.append((source, out))
        moved.memory.append(result)
        return result

    def move_itself(x):
        if not target.moves_objects or isinstance(x, type) or not callable(getattr(x, "to", None)):
            return NotImplemented
        is_tensor = isinstance(x, sys.modules["torch"].Tensor)
        if callable(getattr(x, "record_stream", None)) and not (is_tensor and _only_when_used(x)):
            x = target.move(x)
            moved.memory.append(x)
            return x
        if isinstance(x, Mapping) or is_dataclass(x):
            return NotImplemented
        moved.has_deferred = True
        pins_itself = not is_tensor and callable(getattr(x, "pin_memory", None))
        return Deferred(x.pin_memory() if pins_itself else x)

    with target.submitting():
        moved.value = map_arrays(batch, array_on_device, move_itself)
        _copy(pieces, target)
        moved.copied = target.record()
    return moved


def hand_out(batch, target):
    """The batch for the consumer, whose later work runs after the copies."""
    target.order(batch)
    if not batch.has_deferred:
        return batch.value

    def move_deferred(x):
        return target.move(x.value) if type(x) is Deferred else NotImplemented

    return map_arrays(batch.value, lambda array: array, move_deferred)


def _copy(pieces, target):
    small = [piece for piece in pieces if piece[0].nbytes <= SMALL_BYTES]
    if len(small) < 2:
        small = []
    for source, out in pieces:
        if not small or source.nbytes > SMALL_BYTES:
            # Asynchronous from pinned memory, by the express lane from all other.
            _native.copy_into(source, out, target.stream_handle, False)
    if small:
        sources, targets = zip(*small)
        _native.upload_many(sources, list(targets), stream=target.stream_handle)


def _only_when_used(tensor):
    """Whether a tensor must move on the consumer's stream.

    Sparse and nested ones have no ``record_stream``; what wrote one on another GPU is ordered with the consumer only.
    """
    return tensor.is_cuda or tensor.layout != sys.modules["torch"].strided


def target_for(device):
    """What copies go to on this device."""
    return SimulatedTarget(device) if device.simulated else TorchTarget(device.ordinal)


class SimulatedTarget:
    """A simulated device. Arrays and tensors become DeviceArrays, which know by themselves what writes them."""

    #: Other objects have no way to a simulated device.
    moves_objects = False

    def __init__(self, device):
        self._device = device
        self.stream_handle = device.stream()

    def submitting(self):
        return nullcontext()

    def place_for(self, array):
        import numpy as np

        array = _native_order(array)
        if array is None:
            return None
        # There is no call that only allocates.
        empty = array.new_empty(array.shape) if hasattr(array, "new_empty") else np.empty(array.shape, array.dtype)
        out = _native.to_device(empty, self._device)
        return array, out, out

    def record(self):
        return self.stream_handle.record()

    def order(self, batch):
        pass

    def mark(self):
        return None


_side_streams = {}
_side_streams_lock = threading.Lock()


def _side_stream(ordinal):
    """The stream of all copies to this GPU. One for good: torch's allocator keeps freed memory for each stream."""
    import torch

    with _side_streams_lock:
        if ordinal not in _side_streams:
            _side_streams[ordinal] = torch.cuda.Stream(device=torch.device("cuda", ordinal))
        return _side_streams[ordinal]


class TorchTarget:
    """A GPU, with torch's memory, streams and events.

    Memory is allocated for the side stream, on which the copies run. The consumer's stream waits for the copies'
    event, and is recorded as a user of the memory: freed memory goes back to the side stream, for the next copies,
    only when the consumer's stream has done what it had to do until then. The host waits for nothing.
    """

    moves_objects = True

    def __init__(self, ordinal):
        import torch

        self._torch = torch
        self._device = torch.device("cuda", ordinal)
        self._stream = _side_stream(ordinal)
        self.stream_handle = self._stream.cuda_stream

    def submitting(self):
        """Allocations and copies in this block are on the side stream."""
        return self._torch.cuda.stream(self._stream)

    def place_for(self, array):
        """A source and a target that are contiguous, and what the consumer gets.

        ``None`` if the array stays where it is; no source if it is a tensor that only torch can move.
        """
        torch = self._torch
        if not isinstance(array, torch.Tensor):
            array = _native_order(array)
            dtype = None if array is None else getattr(torch, array.dtype.name, None)
            if not isinstance(dtype, torch.dtype):
                return None
            out = self._allocate(array.shape, dtype)
            return array, out, out
        if array.is_cuda:
            return (None, None, array) if array.device != self._device else None
        if type(array) is not torch.Tensor or not _is_plain(array):
            return None, None, array
        if array.is_contiguous():
            out = self._allocate(array.shape, array.dtype)
            return array, out, out
        order = sorted(range(array.dim()), key=array.stride, reverse=True)
        source = array.permute(order)
        if not source.is_contiguous():
            source = array.contiguous()
            out = self._allocate(source.shape, source.dtype)
            return source, out, out
        # As torch does, keep the order of the axes in memory: images with channels last stay so.
        out = self._allocate(source.shape, source.dtype)
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return source, out, out.permute(inverse)

    def _allocate(self, shape, dtype):
        return self._torch.empty(tuple(shape), dtype=dtype, device=self._device)

    def move(self, x):
        """What torch or the object itself copies, on the current stream."""
        try:
            return x.to(self._device, non_blocking=True)
        except TypeError:
            # Not all objects know the option.
            return x.to(self._device)

    def record(self):
        """An event that is done when all copies so far are."""
        return self._stream.record_event()

    def order(self, batch):
        """Makes the consumer's current stream wait for the copies, and the memory for the consumer's stream."""
        current = self._torch.cuda.current_stream(self._device)
        current.wait_event(batch.copied)
        for memory in batch.memory:
            memory.record_stream(current)

    def mark(self):
        """An event that is done when the consumer's stream has done its work so far."""
        event = self._torch.cuda.Event(blocking=True)
        event.record(self._torch.cuda.current_stream(self._device))
        return event


def _is_plain(tensor):
    """Whether Pinlane can copy it: dense, of a type that it knows, not part of a graph, not a view with a conjugation."""
    torch = sys.modules["torch"]
    return (
        tensor.device.type == "cpu"
        and tensor.layout == torch.strided
        and not tensor.requires_grad
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
        and _dtype_name(tensor) in _DTYPES
    )


#: Element types that can be copied.
_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128 "
    "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()
)


def _dtype_name(array):
    dtype = array.dtype
    return getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")


def _native_order(array):
    """The array with bytes in the machine's order; ``None`` if its elements, such as strings, stay on the host."""
    if _dtype_name(array) not in _DTYPES:
        return None
    if getattr(array.dtype, "isnative", True):
        return array
    return array.astype(array.dtype.newbyteorder("="))
