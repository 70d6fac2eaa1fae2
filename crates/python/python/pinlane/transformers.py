"""Models of Hugging Face transformers, with weights straight to the GPU.

Either a dict of tensors that are read when the model takes them:

    config = AutoConfig.from_pretrained(folder)
    weights = pinlane.transformers.lazy_state_dict(folder, "cuda")
    model = AutoModelForCausalLM.from_pretrained(
        None, config=config, state_dict=weights, dtype="auto", device_map="cuda")

or transformers' own calls, in a block in which it opens files with Pinlane:

    with pinlane.transformers.fast_loading("cuda"):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", device_map="cuda")

The device is the one that ``device_map`` names. Written for transformers 5.22, which takes a tensor from a state dict by
``value[...]`` and has ``safe_open`` in ``transformers.modeling_utils``.
"""

import contextlib
import glob
import importlib
import json
import os
import threading

from ._native import device as open_device
from ._weights import is_host, load_file, safe_open
from .errors import NotSupportedError

__all__ = ["fast_loading", "lazy_state_dict"]

_INDEX = "model.safetensors.index.json"

#: Modules of transformers that open files of weights.
_MODULES = ("transformers.modeling_utils", "transformers.modeling_layers", "transformers.integrations.accelerate")


def lazy_state_dict(path, device="cuda"):
    """The tensors of a file or of a model's folder, by name, read when they are used: for ``state_dict=``.

    >>> import numpy as np, safetensors.numpy, tempfile, pinlane.transformers
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> safetensors.numpy.save_file({"up": np.ones((2, 3), "f4")}, path)
    >>> weights = pinlane.transformers.lazy_state_dict(path, "cpu")
    >>> weights["up"].shape, weights["up"][...].sum().item()
    ((2, 3), 6.0)
    """
    weights = {}
    for file in _files(os.fspath(path)):
        opened = LazyFile(file, device)
        weights.update((name, opened.get_slice(name)) for name in opened.keys())
    return weights


@contextlib.contextmanager
def fast_loading(device="cuda"):
    """In this block transformers reads safetensors files with Pinlane, to this device. For the whole process.

    Transformers opens them for the CPU and then copies to the device that ``device_map`` names; here they are there
    already. On the CPU, or a simulated device for a try, tensors come from host memory.

    Raises ImportError without transformers, and NotSupportedError if its version opens files in another way.
    """
    import transformers  # the library, not this module

    if not is_host(device):
        device = open_device(device)

    def open_file(filename, framework="pt", **_):
        if framework not in ("pt", "torch", "pytorch"):
            return safe_open(filename, framework)
        return LazyFile(filename, device)

    replaced = []
    try:
        for name in _MODULES:
            try:
                module = importlib.import_module(name)
            except ImportError:
                continue
            if hasattr(module, "safe_open"):
                replaced.append((module, module.safe_open))
                module.safe_open = open_file
        if not replaced:
            raise NotSupportedError(
                f"transformers {transformers.__version__} does not open files by safe_open in any of "
                f"{', '.join(_MODULES)}; use lazy_state_dict"
            )
        yield
    finally:
        for module, original in replaced:
            module.safe_open = original


class LazyFile:
    """A file whose tensors are read all at once, on the first use of one of them; what ``safe_open`` is otherwise.

    All at once is several times as fast as one by one. Each tensor is handed out once, and then belongs to the user
    alone; one that is used again is read again.
    """

    def __init__(self, filename, device):
        self._filename = os.fspath(filename)
        self._device = device
        # One by one in host memory: there is no gain, and the threads of transformers read side by side.
        self._reads_all = not is_host(device)
        self._opened = safe_open(self._filename, "pt", device)
        self._loaded = None
        self._lock = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._opened.__exit__()
        self._loaded = None

    def keys(self):
        """Names of the tensors, sorted."""
        return self._opened.keys()

    def metadata(self):
        """The text that the file has beside its tensors."""
        return self._opened.metadata()

    def get_slice(self, name):
        """A tensor that is read when it is indexed."""
        return LazyTensor(self, self._opened.get_slice(name), name)

    def get_tensor(self, name):
        """The tensor with this name."""
        if not self._reads_all:
            return self._opened.get_tensor(name)
        with self._lock:
            if self._loaded is None:
                self._loaded = load_file(self._filename, self._device)
            tensor = self._loaded.pop(name, None)
        return self._opened.get_tensor(name) if tensor is None else tensor


class LazyTensor:
    """A tensor in a file, with what transformers asks of one before it reads it."""

    def __init__(self, file, part, name):
        self._file, self._part, self._name = file, part, name

    def get_shape(self):
        """Its shape, as a list."""
        return self._part.get_shape()

    def get_dtype(self):
        """Its element type, as safetensors spells it: ``"F32"``."""
        return self._part.get_dtype()

    @property
    def shape(self):
        """Its shape."""
        return tuple(self.get_shape())

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.get_shape())

    @property
    def dtype(self):
        """Its torch dtype."""
        import torch

        return getattr(torch, _TORCH_NAMES[self.get_dtype()])

    def is_floating_point(self):
        """Whether its elements are floating-point numbers."""
        return self.dtype.is_floating_point

    def __getitem__(self, index):
        if index is Ellipsis:
            return self._file.get_tensor(self._name)
        # A part, of a model that is spread over several devices: only that is read.
        return self._part[index]


_TORCH_NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def _files(path):
    """The files of a model, as transformers finds them: those that the index names, or all in the folder."""
    if not os.path.isdir(path):
        return [path]
    index = os.path.join(path, _INDEX)
    if os.path.exists(index):
        with open(index, encoding="utf-8") as file:
            return [os.path.join(path, name) for name in sorted(set(json.load(file)["weight_map"].values()))]
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.safetensors")))
    if not files:
        raise FileNotFoundError(f"no safetensors files in {path}")
    return files
