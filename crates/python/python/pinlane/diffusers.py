"""Models of Hugging Face diffusers, with weights straight to the GPU.

    with pinlane.diffusers.fast_loading("cuda"):
        pipeline = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.bfloat16, device_map="cuda")

Written for diffusers 0.42, which reads a model's files by ``safetensors.torch.load_file`` in
``diffusers.models.model_loading_utils``.
"""

import contextlib
import importlib

from ._native import device as open_device
from ._weights import is_host, load_file
from .errors import NotSupportedError

__all__ = ["fast_loading"]

_MODULE = "diffusers.models.model_loading_utils"


@contextlib.contextmanager
def fast_loading(device="cuda"):
    """In this block diffusers reads safetensors files of models with Pinlane, to this device. For the whole process.

    Diffusers asks for tensors in host memory and moves them later; here they are on the device already. Other files,
    such as those of LoRAs, are read as ever.

    Raises ImportError without diffusers, and NotSupportedError if its version reads files in another way.
    """
    import diffusers  # the library, not this module

    if not is_host(device):
        device = open_device(device)
    try:
        module = importlib.import_module(_MODULE)
        original = module.safetensors
    except (ImportError, AttributeError):
        message = f"diffusers {diffusers.__version__} does not read files by safetensors in {_MODULE}"
        raise NotSupportedError(message) from None
    module.safetensors = _Safetensors(original, device)
    try:
        yield
    finally:
        module.safetensors = original


class _Replaced:
    """Another module, but for what is set here."""

    def __init__(self, original):
        self._original = original

    def __getattr__(self, name):
        return getattr(self._original, name)


class _Safetensors(_Replaced):
    """The module ``safetensors`` for diffusers' eyes: no other library is affected."""

    def __init__(self, original, device):
        super().__init__(original)
        self.torch = _Replaced(importlib.import_module("safetensors.torch"))
        self.torch.load_file = lambda filename, device="cpu": load_file(filename, self._target(device))
        self._device = device

    def _target(self, wanted):
        return self._device if is_host(wanted) else wanted
