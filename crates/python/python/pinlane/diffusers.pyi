from contextlib import AbstractContextManager

from ._native import _DeviceLike

__all__ = ["fast_loading"]

def fast_loading(device: _DeviceLike = "cuda") -> AbstractContextManager[None]: ...
