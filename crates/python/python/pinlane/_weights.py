"""Weights from safetensors files, straight to a device or to the host. torch, NumPy and CuPy are imported when needed."""

import errno
import math
import operator
import os
from collections.abc import Iterable, Mapping

from . import _numpy
from ._native import TensorFiles, device as open_device, to_device
from .errors import InvalidInputError, NoDeviceError


def load_file(path, device="cuda", *, framework="pt", dtype=None, select=None, out=None):
    """The tensors of a file, a folder or an index file, as a dict by name.

    ``device`` is a GPU, a simulated one, or ``"cpu"``. On a GPU, tensors are torch's (``framework="pt"``) or CuPy's
    (``"cupy"``), in memory of their library; with ``"np"`` they are ``DeviceArray``. On a simulated device they are
    always ``DeviceArray``: other libraries cannot use its memory. With ``"cpu"`` they are torch tensors or NumPy arrays
    in host memory.

    ``dtype`` converts floating-point tensors on the way to float16, bfloat16, float32 or float64. ``select`` is a name,
    a pattern such as ``"model.layers.0.*"``, a list of them, or a function that gets a name and says whether to load it.
    ``out`` is a dict of existing arrays to fill, by name; only tensors that it names are loaded.

    Missing files raise FileNotFoundError, corrupt ones InvalidDataError with the names of file and tensor.

    >>> import numpy as np, pinlane, safetensors.numpy, tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> safetensors.numpy.save_file({"up": np.ones((2, 3), "f4"), "bias": np.zeros(3, "f4")}, path)
    >>> pinlane.load_file(path, "sim:h200")
    {'bias': <pinlane.DeviceArray (3,) float32 on sim:h200>, 'up': <pinlane.DeviceArray (2, 3) float32 on sim:h200>}
    >>> pinlane.load_file(path, "cpu", framework="np", select="b*", dtype="f2")
    {'bias': array([0., 0., 0.], dtype=float16)}
    """
    return load_files([path], device, framework=framework, dtype=dtype, select=select, out=out)


def load_files(paths, device="cuda", *, framework="pt", dtype=None, select=None, out=None):
    """The tensors of several files, folders or index files, as one dict by name. See ``load_file``."""
    place = _place(framework, device)
    files = _open(paths)
    if out is None:
        return place.load(files, _selected(files, select), dtype=dtype)
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a dict of arrays by name, not {type(out).__name__}")
    names = list(out) if select is None else _selected(files, select)
    missing = [name for name in names if name not in out]
    if missing:
        raise KeyError(f"out has no array for tensor {missing[0]!r}")
    return place.load(files, names, dtype=dtype, out=[out[name] for name in names])


def iter_tensors(paths, device="cuda", *, framework="pt", dtype=None, select=None, device_bytes=2 << 30):
    """Pairs of name and tensor, as they arrive on the device. See ``load_file``; ``paths`` is one path or several.

    At most ``device_bytes`` and the largest tensor are on the device ahead of the loop, so a model that is larger than
    the device's memory can go through it. Leaving the loop ends the load and frees the rest.

    >>> import numpy as np, pinlane, safetensors.numpy, tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> safetensors.numpy.save_file({"up": np.ones((2, 3), "f4")}, path)
    >>> for name, tensor in pinlane.iter_tensors(path, "sim:h200"):
    ...     print(name, tensor.shape)
    up (2, 3)
    """
    try:
        device_bytes = operator.index(device_bytes)
    except TypeError:
        raise TypeError(f"device_bytes must be a whole number, not {device_bytes!r}") from None
    if device_bytes <= 0:
        raise ValueError(f"device_bytes must be at least 1, not {device_bytes}")
    place = _place(framework, device)
    files = _open([paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths)
    return place.iterate(files, _selected(files, select), dtype, device_bytes)


class safe_open:
    """A file, a folder or an index file, whose tensors are read one by one, as with ``safetensors.safe_open``.

    ``framework`` and ``device`` are those of ``load_file``. ``backend`` is ``"mmap"`` or ``"pread"`` as in
    safetensors, and has no effect.

    >>> import numpy as np, pinlane, safetensors.numpy, tempfile
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> safetensors.numpy.save_file({"up": np.arange(6).reshape(2, 3)}, path)
    >>> with pinlane.safe_open(path, "np") as f:
    ...     print(f.keys(), f.get_tensor("up").shape, f.get_slice("up")[1, :2])
    ['up'] (2, 3) [3 4]
    """

    def __init__(self, filename, framework="pt", device="cpu", *, backend=None):
        if backend not in (None, "mmap", "pread"):
            raise ValueError(f'backend must be "mmap" or "pread", not {backend!r}')
        self._place = _place(framework, "cpu" if device is None else device)
        self._open_files = _open([filename])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._open_files = None

    @property
    def _files(self):
        files = self._open_files
        if files is None:
            raise InvalidInputError("the file is closed")
        return files

    def keys(self):
        """Names of the tensors, sorted."""
        return sorted(self._files.names())

    def offset_keys(self):
        """Names of the tensors, in the order in which they are in the file."""
        return self._files.names()

    def metadata(self):
        """The text that the file has beside its tensors, as a dict; None if it has none."""
        return self._files.metadata() or None

    def get_tensor(self, name):
        """The tensor with this name."""
        return self._place.one(self._files, name)

    def get_tensors(self):
        """All tensors, as a dict by name. Much faster than one by one."""
        files = self._files
        return self._place.load(files, files.names())

    def tensors(self):
        """Pairs of name and tensor, as they are read."""
        files = self._files
        return self._place.iterate(files, files.names(), None, None)

    def get_slice(self, name):
        """An object that reads a part of the tensor when it is indexed."""
        return TensorSlice(self._files, self._place, name)


class TensorSlice:
    """A tensor in a file. Indexing it reads the rows that are needed, and no others."""

    def __init__(self, files, place, name):
        self._files, self._place, self._name = files, place, name
        self._dtype, self._shape = files.describe(name)

    def get_shape(self):
        """Shape of the whole tensor, as a list."""
        return list(self._shape)

    def get_dtype(self):
        """Element type, as safetensors spells it: ``"F32"``."""
        return self._dtype

    def __getitem__(self, index):
        keys = _expanded(index, self._shape)
        if self._dtype in _PACKED and keys and keys[-1] != slice(0, self._shape[-1], 1):
            raise ValueError(f"elements of {self._dtype} are smaller than a byte, so their last axis cannot be cut")
        if not keys:
            return self._place.one(self._files, self._name)
        first, *others = keys
        is_row = isinstance(first, int)
        rows = (first, first + 1) if is_row else (first.start, first.stop)
        whole_rows = others == [slice(0, length, 1) for length in self._shape[1:]]
        if whole_rows and (is_row or first.step == 1):
            array = self._place.one(self._files, self._name, rows)
            return array.reshape(array.shape[1:]) if is_row else array
        within = 0 if is_row else slice(None, None, first.step)
        return self._place.part(self._files, self._name, rows, (within, *others))


# Types with several elements in a byte.
_PACKED = ("F4", "F6_E2M3", "F6_E3M2")


def _expanded(index, shape):
    """One int or slice per axis, within its length."""
    keys = list(index) if isinstance(index, tuple) else [index]
    if any(key is Ellipsis for key in keys):
        at = next(at for at, key in enumerate(keys) if key is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
    if len(keys) > len(shape):
        raise IndexError(f"too many indices: the tensor has {len(shape)} axes, {len(keys)} were indexed")
    keys += [slice(None)] * (len(shape) - len(keys))
    return [_axis_key(key, axis, length) for axis, (key, length) in enumerate(zip(keys, shape))]


def _axis_key(key, axis, length):
    if isinstance(key, slice):
        start, stop, step = key.indices(length)
        if step < 0:
            raise ValueError(f"axis {axis}: the step of a slice must be positive, not {step}")
        return slice(start, max(start, stop), step)
    if isinstance(key, list) and not key:
        return slice(0, 0, 1)
    try:
        if isinstance(key, bool):
            raise TypeError
        position = operator.index(key)
    except TypeError:
        message = f"axis {axis}: tensors in files are indexed with integers, slices and ..., not {type(key).__name__}"
        raise TypeError(message) from None
    if not -length <= position < length:
        raise IndexError(f"index {position} is out of range for axis {axis} with length {length}")
    return position % length


class _Host:
    """Arrays in host memory, allocated by ``arrays``."""

    def __init__(self, arrays):
        self._arrays = arrays

    def load(self, files, names, *, dtype=None, out=None, rows=None):
        if out is not None:
            files.read_out(names, out, dtype=dtype)
            return dict(zip(names, out))
        arrays, addresses = self._arrays(files.array_types(names, dtype=dtype, rows=rows))
        files.read(names, addresses, dtype=dtype, rows=rows)
        return dict(zip(names, arrays))

    def one(self, files, name, rows=None):
        return self.load(files, [name], rows=rows)[name]

    def iterate(self, files, names, dtype, device_bytes):
        for name in names:
            yield name, self.load(files, [name], dtype=dtype)[name]

    def part(self, files, name, rows, keys):
        part = self.one(files, name, rows)[keys]
        # A copy, so that the other elements need not be kept.
        return part.clone() if hasattr(part, "clone") else part.copy()


# Up to here, reading a tensor and copying it costs less than starting a load.
_FEW_ELEMENTS = 1 << 16


class _OnDevice:
    """Arrays on a device: ours, or those of a library that ``memory`` allocates."""

    def __init__(self, device, memory=None, host_arrays=_numpy.host_arrays):
        self._device, self._memory, self._host = device, memory, _Host(host_arrays)

    def _start(self, files, names, **options):
        if self._memory is not None and options.get("out") is None:
            options["allocate"], options["stream"] = self._memory(self._device.ordinal)
        return files.load(names, self._device, **options)

    def load(self, files, names, *, dtype=None, out=None, rows=None):
        return self._start(files, names, dtype=dtype, out=out, rows=rows).all()

    def one(self, files, name, rows=None):
        shape, _ = files.array_types([name], rows=rows)[0]
        if math.prod(shape) <= _FEW_ELEMENTS:
            try:
                on_host = self._host.one(files, name, rows)
            except TypeError:
                pass  # an element type that only arrays on the device have
            else:
                return self._copied(files, name, on_host)
        return self.load(files, [name], rows=rows)[name]

    def iterate(self, files, names, dtype, device_bytes):
        load = self._start(files, names, dtype=dtype, device_bytes=device_bytes)
        try:
            while landed := load.next():
                landed.reverse()
                while landed:
                    # Popped, so that nothing here keeps what the loop is done with.
                    yield landed.pop()
        finally:
            load.close()

    def part(self, files, name, rows, keys):
        return self._copied(files, name, self._host.part(files, name, rows, keys))

    def _copied(self, files, name, on_host):
        if self._memory is None:
            return to_device(on_host, self._device)
        allocate, stream = self._memory(self._device.ordinal)
        dtype = files.array_types([name])[0][1]
        (array,), _ = allocate([(tuple(on_host.shape), dtype)])
        return to_device(on_host, out=array, stream=stream)


def _place(framework, device):
    """Where arrays go."""
    library = _FRAMEWORKS.get(framework)
    if library is None:
        raise ValueError(f'framework must be "pt", "np" or "cupy", not {framework!r}')
    if is_host(device):
        if library == "cupy":
            raise ValueError('CuPy has no arrays in host memory; use framework="np"')
        return _Host(_host_arrays(library))
    try:
        device = open_device(device)
    except NoDeviceError as error:
        if "unknown device" not in str(error):
            raise
        raise NoDeviceError(f'{error}; or "cpu" for host memory') from None
    if device.simulated or library == "np":
        return _OnDevice(device)
    if library == "pt":
        _torch = _torch_module()
        return _OnDevice(device, _torch.device_memory, _torch.host_arrays)
    from . import _cupy

    return _OnDevice(device, _cupy.device_memory)


def is_host(device):
    """Whether this names the host's memory, as torch spells it."""
    return str(device) in ("cpu", "cpu:0")


_FRAMEWORKS = {"pt": "pt", "torch": "pt", "pytorch": "pt", "np": "np", "numpy": "np", "cupy": "cupy"}


def _host_arrays(library):
    if library == "np":
        return _numpy.host_arrays
    return _torch_module().host_arrays


def _torch_module():
    try:
        from . import _torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message = 'framework="pt" needs torch, which is not installed; framework="np" gives arrays without it'
        raise ModuleNotFoundError(message, name="torch") from None
    return _torch


def _open(paths):
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError("paths must be a list of paths; load_file takes one path")
    paths = [os.fsdecode(path) for path in paths]
    if "" in paths:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "")
    return TensorFiles(paths)


def _selected(files, select):
    """Names of the selected tensors, in the order of the files."""
    if select is None:
        return files.names()
    if callable(select):
        return [name for name in files.names() if select(name)]
    names = [select] if isinstance(select, str) else select
    names = list(names) if isinstance(names, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"select must be a name, a pattern, a list of them or a function, not {select!r}")
    return files.select(names)
