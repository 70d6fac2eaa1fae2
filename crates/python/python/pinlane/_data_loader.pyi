from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import Any, Literal

from ._native import Device, _DeviceLike

class TarDataset:
    def __init__(
        self,
        paths: str | PathLike[str] | Iterable[str | PathLike[str]],
        fields: Mapping[str, tuple[Any, tuple[int, ...] | int]],
    ) -> None: ...
    def __len__(self) -> int: ...

class Normalize:
    mean: list[float]
    std: list[float]
    channel_axis: int
    dtype: str
    def __init__(
        self, mean: Iterable[float], std: Iterable[float], *, channel_axis: int = 0, dtype: Any = "float32"
    ) -> None: ...

class DataLoader:
    dataset: Any
    batch_size: int
    drop_last: bool
    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        *,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        num_workers: int | None = None,
        prefetch: int = 3,
        device: _DeviceLike = None,
        rank: int | None = None,
        world_size: int | None = None,
        transforms: Normalize | Mapping[Any, Normalize] | None = None,
        framework: Literal["pt"] | None = None,
        skip_errors: bool = False,
        pinned_bytes: int = 536870912,
    ) -> None: ...
    @property
    def device(self) -> Device: ...
    @property
    def num_workers(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def stats(self) -> dict[str, int]: ...
