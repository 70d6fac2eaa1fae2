"""What weights ask of CuPy: memory. CuPy is imported at the first call."""

from ._numpy import dtype_named


def device_memory(ordinal):
    """A function that allocates arrays on a GPU and returns them with their addresses, and the stream on which it does so."""
    import cupy

    device = cupy.cuda.Device(ordinal)
    with device:
        stream = cupy.cuda.get_current_stream()

    def allocate(types):
        with device, stream:
            arrays = [cupy.empty(shape, dtype_named(name)) for shape, name in types]
        return arrays, [array.data.ptr for array in arrays]

    return allocate, stream
