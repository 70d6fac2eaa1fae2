from collections.abc import Sequence

from ._native import Module, _DeviceLike

def compile(source: str, *, device: _DeviceLike = None, options: str | Sequence[str] = ()) -> Module: ...
