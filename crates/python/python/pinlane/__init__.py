"""The express lane between host memory and the GPU.

Arrays of NumPy and torch reach the GPU at nearly the link's speed:

>>> import numpy as np, pinlane
>>> gpu = pinlane.device("sim:h200")          # a simulated GPU; "cuda" is a real one
>>> x = np.arange(6, dtype="f4").reshape(2, 3)
>>> on_gpu = pinlane.to_device(x, gpu)
>>> on_gpu
<pinlane.DeviceArray (2, 3) float32 on sim:h200>
>>> bool((pinlane.to_host(on_gpu) == x).all())
True

Importing it opens no device and imports neither NumPy nor torch. ``pinlane.torch``, ``pinlane.transformers``,
``pinlane.diffusers``, ``pinlane.vllm`` and ``pinlane.sglang`` are imported when they are used.
"""

from ._native import (
    VERSION,
    Device,
    DeviceArray,
    Event,
    Kernel,
    Module,
    Pinned,
    Stream,
    Timeline,
    device,
    device_names,
    is_pinned,
    launch,
    pin,
    pinned_bytes,
    pinned_limit,
    set_pinned_limit,
    to_device,
    to_host,
    upload_many,
)
from ._compile import compile
from ._data_loader import DataLoader, Normalize, TarDataset
from ._numpy import empty, empty_like, full, zeros
from ._pin_memory import pin_memory
from ._weights import iter_tensors, load_file, load_files, safe_open
from .errors import (
    CompileError,
    DeviceLostError,
    Error,
    InvalidDataError,
    InvalidInputError,
    NoDeviceError,
    NotSupportedError,
    OutOfMemoryError,
    PinnedLimitError,
)

__version__ = VERSION


def synchronize(device: "Device | str | int | None" = None) -> None:
    """Waits until all work on the device is done, that of other libraries too."""
    _device(device).synchronize()


def stats(device: "Device | str | int | None" = None) -> "dict[str, int]":
    """Memory that the device holds, in bytes. See :meth:`Device.stats`."""
    return _device(device).stats()


_device = device

#: Modules that build on other libraries, imported when they are used.
_SUBMODULES = frozenset({"diffusers", "sglang", "torch", "transformers", "vllm"})

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from . import diffusers, sglang, torch, transformers, vllm
else:

    def __getattr__(name):
        if name not in _SUBMODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return importlib.import_module(f".{name}", __name__)


def __dir__():
    return sorted({*globals(), *_SUBMODULES})


__all__ = [
    "CompileError",
    "DataLoader",
    "Device",
    "DeviceArray",
    "DeviceLostError",
    "Error",
    "Event",
    "InvalidDataError",
    "InvalidInputError",
    "Kernel",
    "Module",
    "NoDeviceError",
    "Normalize",
    "NotSupportedError",
    "OutOfMemoryError",
    "Pinned",
    "PinnedLimitError",
    "Stream",
    "TarDataset",
    "Timeline",
    "compile",
    "device",
    "device_names",
    "empty",
    "empty_like",
    "full",
    "is_pinned",
    "iter_tensors",
    "launch",
    "load_file",
    "load_files",
    "pin",
    "pin_memory",
    "pinned_bytes",
    "pinned_limit",
    "safe_open",
    "set_pinned_limit",
    "stats",
    "synchronize",
    "to_device",
    "to_host",
    "upload_many",
    "zeros",
]
