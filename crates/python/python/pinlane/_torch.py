"""What the native part asks of torch: memory and streams. Imported only when a tensor comes along."""

import torch


def empty_on_device(tensor, ordinal, dtype, stream):
    """A tensor in torch's device memory for a copy of this one, which will be made on a stream (its handle)."""
    dtype = tensor.dtype if dtype is None else getattr(torch, dtype)
    device = torch.device("cuda", ordinal)
    copy = torch.empty(tensor.shape, dtype=dtype, device=device)
    if stream is not None:
        # Torch hands out memory in the order of its current stream.
        external = torch.cuda.ExternalStream(stream, device)
        external.wait_stream(torch.cuda.current_stream(device))
        copy.record_stream(external)
    return copy


def written(tensor):
    """Counts a change of a tensor, as torch does for its own."""
    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def flat_bytes(tensor):
    """The memory of a contiguous tensor as bytes, whatever its elements."""
    if not tensor.is_contiguous():
        raise ValueError("the array must be contiguous")
    return tensor.detach().view(-1).view(torch.uint8)


def byte_bounds(tensor):
    """The addresses of the first byte of a tensor, and behind its last one."""
    low = tensor.data_ptr()
    if tensor.numel() == 0 or tensor.device.type != "cpu":
        return low, low
    reach = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride()))
    return low, low + (reach + 1) * tensor.element_size()


def empty_on_host(tensor):
    """A tensor in host memory for a copy of this one."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")


def host_arrays(types):
    """Tensors of these shapes and element types in host memory, and their addresses."""
    return _tensors(types, torch.device("cpu"))


def device_memory(ordinal):
    """A function that allocates tensors on a GPU, as ``host_arrays`` does, and the stream on which it does so."""
    device = torch.device("cuda", ordinal)
    stream = torch.cuda.current_stream(device)

    def allocate(types):
        if torch.cuda.current_stream(device) == stream:
            return _tensors(types, device)
        with torch.cuda.stream(stream):
            return _tensors(types, device)

    return allocate, stream


def _tensors(types, device):
    empty, dtypes = torch.empty, _DTYPES
    tensors = []
    for shape, name in types:
        dtype = dtypes.get(name)
        if dtype is None:
            dtype = dtypes[name] = _dtype_named(name)
        tensors.append(empty(shape, dtype=dtype, device=device))
    return tensors, [tensor.data_ptr() for tensor in tensors]


# Only ever gets entries that are always the same.
_DTYPES = {}


def _dtype_named(name):
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise TypeError(f"torch {torch.__version__} has no {name}")
    return dtype


def current_stream(ordinal):
    """The handle of torch's current stream."""
    return torch.cuda.current_stream(ordinal).cuda_stream


def from_capsule(capsule):
    """A tensor that shares the memory of a DLPack capsule."""
    return torch.from_dlpack(capsule)
