"""Batches of a dataset on the GPU, loaded ahead by native threads."""

import operator
import os
import weakref
from collections.abc import Mapping

from ._native import Dataset, Loader


class TarDataset:
    """Samples that are groups of files in tar archives, in WebDataset layout, for :class:`DataLoader`.

    ``paths`` is an archive, a folder of archives, or a list of them; archives must not be compressed. ``fields`` is a
    dict with an element type and a shape for each file extension. Instead of a shape it may be a number: the most
    elements that a sample has. Such a field becomes all values of the batch in one array, and a second array
    ``NAME_offsets`` that says where each sample starts.

    >>> pinlane.TarDataset("train.tar", {"cls": ("u1", (1,)), "jpg": ("u1", 200_000)})    # doctest: +SKIP
    """

    def __init__(self, paths, fields):
        paths = [paths] if _is_path(paths) else paths
        if not hasattr(paths, "__iter__"):
            raise TypeError(f"paths must be a path or a list of paths, not {type(paths).__name__}")
        paths = list(paths)
        if not isinstance(fields, Mapping):
            raise TypeError(f'fields must be a dict such as {{"cls": ("u1", (1,))}}, not {type(fields).__name__}')
        described = [_described_file(name, field) for name, field in fields.items()]
        self._native = Dataset.of_tar(paths, described)

    def __len__(self):
        return len(self._native)


def _described_file(name, field):
    """What the native dataset needs to know of the files with this extension."""
    if not isinstance(name, str):
        raise TypeError(f"fields must be named by file extensions such as 'cls', not {name!r}")
    wrong = f"field {name!r} must be an element type and a shape such as ('u1', (1,)), not {field!r}"
    if not isinstance(field, (tuple, list)) or len(field) != 2:
        raise TypeError(wrong)
    dtype, shape = field
    try:
        shape = operator.index(shape) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(wrong) from None
    if any(length < 0 for length in (shape if isinstance(shape, tuple) else [shape])):
        raise ValueError(f"field {name!r}: lengths must not be negative: {shape}")
    return name, (name.lstrip("."), dtype, shape)


class Normalize:
    """Bytes to floating-point numbers on the GPU: ``(x / 255 - mean) / std``, for each channel.

    ``mean`` and ``std`` have one number for each channel. ``channel_axis`` is the axis of the channels in a sample: 0
    for images of channels, height, width; -1 for height, width, channels. ``dtype`` is ``"float32"`` or
    ``"bfloat16"``.
    """

    def __init__(self, mean, std, *, channel_axis=0, dtype="float32"):
        self.mean = _channel_values("mean", mean)
        self.std = _channel_values("std", std)
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean has {len(self.mean)} channels, but std has {len(self.std)}")
        if 0.0 in self.std:
            raise ValueError(f"std must not be 0: {self.std}")
        self.channel_axis = _whole_number("channel_axis", channel_axis)
        self.dtype = _float_name(dtype)

    def _for_field(self, name, field_dtype, shape):
        """What the native loader needs: the number of elements of one channel that lie together is part of it."""
        if field_dtype != "uint8":
            raise ValueError(f"Normalize takes bytes (uint8), but field {name!r} has elements of {field_dtype}")
        if isinstance(shape, int):
            return name, self.mean, self.std, 1, self.dtype
        if not -len(shape) <= self.channel_axis < len(shape):
            raise ValueError(f"a sample of {name!r} has the shape {shape}, it has no axis {self.channel_axis}")
        if shape[self.channel_axis] != len(self.mean):
            found = shape[self.channel_axis]
            raise ValueError(f"a sample of {name!r} has {found} channels, Normalize has {len(self.mean)}")
        together = 1
        for length in shape[self.channel_axis % len(shape) + 1 :]:
            together *= length
        return name, self.mean, self.std, together, self.dtype


def _channel_values(name, values):
    try:
        values = [float(value) for value in values]
    except TypeError:
        raise TypeError(f"{name} must be a list with one number for each channel, not {values!r}") from None
    if not values:
        raise ValueError(f"{name} must have a number for each channel, it is empty")
    return values


def _float_name(dtype):
    """The name of float32 or bfloat16, however they are given."""
    is_torch = type(dtype).__module__ == "torch"
    name = str(dtype).removeprefix("torch.") if is_torch else getattr(dtype, "__name__", getattr(dtype, "name", dtype))
    name = {"f4": "float32", "bf16": "bfloat16"}.get(name, name) if isinstance(name, str) else name
    if name not in ("float32", "bfloat16"):
        raise ValueError(f'dtype must be "float32" or "bfloat16", not {dtype!r}')
    return name


def _whole_number(name, value, least=None, most=None):
    """A number of the user's, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    if most is not None and number > most:
        raise ValueError(f"{name} must be at most {most}, not {number}")
    return number


def _flag(name, value):
    # NumPy has a class of its own.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


#: The largest seed, and number of an epoch.
_MOST = (1 << 64) - 1

#: The largest size.
_MOST_BYTES = (1 << 63) - 1


class DataLoader:
    """Batches of a dataset on the GPU.

    Native threads gather the samples into pinned memory and copy the batches ahead, without the interpreter. Any work on
    a batch waits for its copy, on the device.

    ``dataset`` is

    - an array or a tensor whose rows are the samples, or a dict or a tuple of them. They stay where they are;
    - the path of an npy or safetensors file or of a folder, or a list of paths. Rows are read as they are needed;
    - a :class:`TarDataset`;
    - an object with ``__getitem__`` and ``__len__`` whose samples are arrays, numbers, or dicts or tuples of them. All
      samples must have the types and shapes of the first. The loader's threads call it side by side, so it must be
      thread-safe; they share the interpreter, so this is no faster than Python.

    A batch is what a sample is: a dict, a tuple or one array. Its arrays are :class:`DeviceArray`, or with
    ``framework="pt"`` torch tensors that share their memory. Use such tensors on the stream of torch that was current
    when they were handed out, or make that stream wait for other uses before you drop them.

    The arguments are those of torch's ``DataLoader``, with these differences:

    - ``shuffle`` depends on ``seed`` and the number of the epoch only. Each iteration is a new epoch;
    - ``num_workers`` is a number of threads. ``None`` chooses; 0 reads on the calling thread;
    - ``rank`` and ``world_size`` share the samples among processes. By default they are those of the launcher
      (torchrun, MPI, SLURM). All ranks get the same number of samples: without ``drop_last`` some ranks repeat a sample
      at the end of an epoch, and the iterator's attribute ``padding`` says how many samples of a batch are repeats;
    - ``transforms`` normalises fields of bytes on the GPU: a dict of :class:`Normalize` by field, or one for a dataset
      of one array. The fields of a tuple are named ``"0"``, ``"1"``, …;
    - ``prefetch`` is the number of batches to prepare ahead, ``pinned_bytes`` limits the pinned memory for them;
    - ``skip_errors`` leaves out samples that cannot be read, instead of raising what they raised. Batches may then be
      shorter, even empty; the iterator's attribute ``skipped`` lists the index of each missing sample and the reason.

    The iterator has the attributes ``indices``, ``padding`` and ``skipped`` of the batch that it returned last. A dataset
    without samples has no batches.

    >>> import numpy as np, pinlane
    >>> images, labels = np.zeros((10, 3, 4, 4), "u1"), np.arange(10)
    >>> loader = pinlane.DataLoader((images, labels), batch_size=4, device="sim:h200")
    >>> len(loader)
    3
    >>> for x, y in loader:
    ...     print(x, y.numpy())
    <pinlane.DeviceArray (4, 3, 4, 4) uint8 on sim:h200> [0 1 2 3]
    <pinlane.DeviceArray (4, 3, 4, 4) uint8 on sim:h200> [4 5 6 7]
    <pinlane.DeviceArray (2, 3, 4, 4) uint8 on sim:h200> [8 9]
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        *,
        shuffle=False,
        seed=0,
        drop_last=False,
        num_workers=None,
        prefetch=3,
        device=None,
        rank=None,
        world_size=None,
        transforms=None,
        framework=None,
        skip_errors=False,
        pinned_bytes=512 << 20,
    ):
        if framework not in (None, "pt"):
            raise ValueError(f'framework must be None or "pt", not {framework!r}')
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size must be given together")
        if rank is not None:
            world_size = _whole_number("world_size", world_size, 1, _MOST_BYTES)
            rank = _whole_number("rank", rank, 0)
            if rank >= world_size:
                raise ValueError(f"rank must be below world_size, which is {world_size}, not {rank}")
        if num_workers is not None:
            num_workers = _whole_number("num_workers", num_workers, 0, 256)
        self.dataset = dataset
        self.batch_size = batch_size = _whole_number("batch_size", batch_size, 1, _MOST_BYTES)
        self.drop_last = drop_last = _flag("drop_last", drop_last)
        skip_errors = _flag("skip_errors", skip_errors)
        native, self._form = _native_dataset(dataset, skip_errors)
        self._loader = Loader(
            native,
            device,
            batch_size=batch_size,
            shuffle=_flag("shuffle", shuffle),
            seed=_whole_number("seed", seed, 0, _MOST),
            drop_last=drop_last,
            workers=num_workers,
            prefetch=_whole_number("prefetch", prefetch, 1, 1024),
            shard=None if rank is None else (rank, world_size),
            skip_errors=skip_errors,
            normalize=_normalize(transforms, native.fields) if len(native) > 0 else [],
            pinned_bytes=_whole_number("pinned_bytes", pinned_bytes, 0, _MOST_BYTES),
        )
        if framework == "pt" and self._loader.device.simulated:
            raise ValueError("torch cannot use the memory of a simulated device; leave out framework")
        self._framework = framework
        self._next_epoch = 0
        self._resume = None
        self._batches = None
        self._has_started = False
        _close_at_exit(self)

    @property
    def device(self):
        """The device of the batches."""
        return self._loader.device

    @property
    def num_workers(self):
        """Threads that read samples."""
        return self._loader.workers

    def __len__(self):
        """Number of batches in an epoch."""
        return len(self._loader)

    def __iter__(self):
        """Starts an epoch. An iterator that is still open is closed."""
        self._close()
        resume, self._resume = self._resume, None
        self._has_started = True
        if resume is None:
            epoch = self._loader.epoch(self._next_epoch)
            self._next_epoch += 1
        else:
            epoch = self._loader.restore(resume)
            self._next_epoch = resume["epoch"] + 1
        batches = _Batches(epoch, self._form, self._framework, self.device.ordinal)
        self._batches = weakref.ref(batches)
        return batches

    def set_epoch(self, epoch):
        """Sets the number of the next epoch, from 0. With ``shuffle`` it decides the order."""
        self._next_epoch = _whole_number("epoch", epoch, 0, _MOST - 1)
        self._resume, self._has_started = None, False

    def state_dict(self):
        """How far the consumer is: the epoch, and how many batches of it were handed out."""
        if self._resume is not None:
            return dict(self._resume)
        if not self._has_started:
            return {**self._loader.state(), "epoch": self._next_epoch, "batch": 0, "start": 0}
        return self._loader.state()

    def load_state_dict(self, state):
        """The next iteration continues at a saved state: no batch comes twice, and none is left out.

        A state of the end of an epoch continues with the next epoch. Dataset, seed, ``shuffle`` and ``drop_last`` must be
        those of the loader that saved it. The number of ranks and the batch size may be others: every sample that is left
        comes once, if all ranks load the state of the same step, whichever rank saved it.
        """
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a dict that state_dict returned, not {type(state).__name__}")
        self._close()
        state = dict(state)
        if self._loader.batches_left(state) == 0:
            state.update(epoch=state["epoch"] + 1, batch=0, start=0)
        self._resume = state

    def stats(self):
        """What the loader has done so far: batches, samples and bytes, and nanoseconds of each stage as ``…_ns``."""
        return self._loader.stats()

    def _close(self):
        batches = self._batches and self._batches()
        if batches is not None:
            batches.close()


class _Batches:
    """The batches of an epoch."""

    def __init__(self, epoch, form, framework, ordinal):
        self._epoch, self._form, self._framework, self._ordinal = epoch, form, framework, ordinal
        self.indices, self.padding, self.skipped = [], 0, []

    def __iter__(self):
        return self

    def __next__(self):
        batch = self._epoch.next()
        self.indices, self.padding, self.skipped = batch.indices, batch.padding, batch.skipped
        if self._framework is None:
            arrays = batch.arrays()
        else:
            from . import _torch

            capsules = batch.capsules(_torch.current_stream(self._ordinal))
            arrays = [(name, _torch.from_capsule(capsule)) for name, capsule in capsules]
        if self._form is dict:
            return dict(arrays)
        arrays = [array for _, array in arrays]
        return tuple(arrays) if self._form is tuple else arrays[0]

    def close(self):
        """Stops reading."""
        self._epoch.close()


def _native_dataset(dataset, skip_errors):
    """The native dataset of what a user gives, and the form of its samples: ``dict``, ``tuple``, or ``None`` for one array."""
    if isinstance(dataset, TarDataset):
        return dataset._native, dict
    if type(dataset).__module__.startswith("torch.utils.data") and type(dataset).__name__ == "TensorDataset":
        dataset = tuple(dataset.tensors)
    if _is_path(dataset):
        return Dataset.of_files([dataset]), dict
    if isinstance(dataset, (list, tuple)) and dataset and all(_is_path(path) for path in dataset):
        return Dataset.of_files(list(dataset)), dict
    if isinstance(dataset, dict):
        return Dataset.of_arrays([(str(name), array) for name, array in dataset.items()]), dict
    if isinstance(dataset, tuple):
        return Dataset.of_arrays([(str(number), array) for number, array in enumerate(dataset)]), tuple
    if _is_array(dataset):
        return Dataset.of_arrays([("0", dataset)]), None
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return _python_dataset(dataset, skip_errors)
    raise TypeError(f"a dataset is arrays, paths, or an object with __getitem__ and __len__, not {type(dataset).__name__}")


#: How many samples that cannot be read are left out in search of the first that can.
_ATTEMPTS = 100


def _first_sample(dataset, skip_errors):
    """The first sample that can be read, which has the types of all, and its index."""
    failed = None
    for index in range(min(len(dataset), _ATTEMPTS) if skip_errors else 1):
        try:
            return dataset[index], index
        except Exception as error:
            failed = failed or error
    raise failed


def _python_dataset(dataset, skip_errors):
    if len(dataset) == 0:
        # It never has a sample, so it needs no types.
        return Dataset.of_python(0, [("0", "u1", ())], dataset.__getitem__), None
    first, first_index = _first_sample(dataset, skip_errors)
    if isinstance(first, dict):
        form, names = dict, [str(name) for name in first]
    elif isinstance(first, (tuple, list)):
        form, names = tuple, [str(number) for number in range(len(first))]
    else:
        form, names = None, ["0"]

    def read(index):
        sample = dataset[index]
        if form is dict:
            if list(map(str, sample)) != names:
                raise ValueError(f"the sample has the fields {list(sample)}, the first sample {names}")
            values = sample.values()
        elif form is tuple:
            if len(sample) != len(names):
                raise ValueError(f"the sample has {len(sample)} fields, the first sample {len(names)}")
            values = sample
        else:
            values = (sample,)
        return [value if _is_array(value) else _as_array(value) for value in values]

    fields = [(name, array.dtype, tuple(array.shape)) for name, array in zip(names, read(first_index))]
    return Dataset.of_python(len(dataset), fields, read), form


def _as_array(value):
    """A number, or a list of numbers, as torch's ``default_collate`` takes it: ints are int64, floats float64."""
    import numpy as np

    return np.asarray(value)


def _is_array(value):
    """Whether this is an array or a tensor."""
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _normalize(transforms, fields):
    if transforms is None:
        return []
    if isinstance(transforms, Normalize):
        if len(fields) > 1:
            names = [name for name, *_ in fields]
            raise ValueError(f"the dataset has the fields {names}: transforms must be a dict by field")
        transforms = {fields[0][0]: transforms}
    if not isinstance(transforms, Mapping):
        raise TypeError(f"transforms must be a Normalize or a dict of them by field, not {type(transforms).__name__}")
    types = {name: (dtype, shape) for name, dtype, shape in fields}
    found = []
    for name, transform in transforms.items():
        if str(name) not in types:
            raise ValueError(f"the dataset has no field {name!r}, only {list(types)}")
        if not isinstance(transform, Normalize):
            raise TypeError(f"the transform of field {name!r} must be a Normalize, not {type(transform).__name__}")
        found.append(transform._for_field(str(name), *types[str(name)]))
    return found


def _close_at_exit(loader):
    """Stops the loader before the interpreter ends: its threads may be calling the dataset."""
    import atexit

    loader = weakref.ref(loader)

    def close():
        living = loader()
        if living is not None:
            living._close()

    atexit.register(close)
    weakref.finalize(loader(), atexit.unregister, close).atexit = False
