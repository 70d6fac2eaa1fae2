from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, TypeAlias

from ._native import TensorFiles, _DeviceLike

_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_Select: TypeAlias = str | Iterable[str] | Callable[[str], bool] | None

# Tensors are torch's, CuPy's, NumPy's or DeviceArrays: whichever the framework and the device say.
def load_file(
    path: _Path,
    device: _DeviceLike = "cuda",
    *,
    framework: str = "pt",
    dtype: Any = None,
    select: _Select = None,
    out: Mapping[str, Any] | None = None,
) -> dict[str, Any]: ...
def load_files(
    paths: Iterable[_Path],
    device: _DeviceLike = "cuda",
    *,
    framework: str = "pt",
    dtype: Any = None,
    select: _Select = None,
    out: Mapping[str, Any] | None = None,
) -> dict[str, Any]: ...
def iter_tensors(
    paths: _Path | Iterable[_Path],
    device: _DeviceLike = "cuda",
    *,
    framework: str = "pt",
    dtype: Any = None,
    select: _Select = None,
    device_bytes: int = 2147483648,
) -> Iterator[tuple[str, Any]]: ...

class safe_open:
    def __init__(
        self, filename: _Path, framework: str = "pt", device: _DeviceLike = "cpu", *, backend: str | None = None
    ) -> None: ...
    def __enter__(self) -> safe_open: ...
    def __exit__(self, *_: object) -> None: ...
    def keys(self) -> list[str]: ...
    def offset_keys(self) -> list[str]: ...
    def metadata(self) -> dict[str, str] | None: ...
    def get_tensor(self, name: str) -> Any: ...
    def get_tensors(self) -> dict[str, Any]: ...
    def tensors(self) -> Iterator[tuple[str, Any]]: ...
    def get_slice(self, name: str) -> TensorSlice: ...

class TensorSlice:
    def __init__(self, files: TensorFiles, place: Any, name: str) -> None: ...
    def get_shape(self) -> list[int]: ...
    def get_dtype(self) -> str: ...
    def __getitem__(self, index: Any) -> Any: ...
