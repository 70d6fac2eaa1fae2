"""Batches of any ``DataLoader`` on the GPU ahead of time.

>>> import torch, pinlane.torch
>>> data = torch.utils.data.TensorDataset(torch.arange(6.0))
>>> loader = torch.utils.data.DataLoader(data, batch_size=2)
>>> for (batch,) in pinlane.torch.CudaPrefetcher(loader, device="sim:h200"):    # "cuda" gives tensors
...     print(batch, batch.numpy())
<pinlane.DeviceArray (2,) float32 on sim:h200> [0. 1.]
<pinlane.DeviceArray (2,) float32 on sim:h200> [2. 3.]
<pinlane.DeviceArray (2,) float32 on sim:h200> [4. 5.]
"""

import copy
import weakref

from . import _native
from ._batch_upload import target_for
from ._prefetch import Feed, Iteration, LoaderSource

__all__ = ["CudaPrefetcher", "prefetch_prepared"]

_OWN = frozenset({"_source", "_device", "_depth", "_target", "_feeds", "_newest"})


class CudaPrefetcher:
    """A loader whose batches are on the GPU, copied ahead of the consumer.

    A thread fetches batches from ``loader`` and copies them from where they are (ordinary memory, or memory that
    workers share) through Pinlane's ring to torch tensors on ``device``, up to ``depth`` batches ahead. The copies run
    on a stream of their own; the stream that is current when a batch is handed out waits for them, the host does not.
    The loader needs no ``pin_memory=True``; batches that are pinned are copied directly.

    In a batch, tensors and NumPy arrays become tensors on the device, in nests of dicts, lists, tuples, named tuples
    and dataclasses. Objects with ``to`` and ``record_stream``, such as torch_geometric's, move themselves on the
    stream of the copies; those with ``to`` only, such as a ``PackedSequence``, on the consumer's stream, from pinned
    memory if they have ``pin_memory``. So do sparse and nested tensors. Everything else stays as it is, strings and
    arrays of strings for example.

    ``device`` is torch's current GPU if it is not given. On a simulated one, such as ``"sim:h200"``, batches hold
    ``pinlane.DeviceArray`` in place of tensors, and objects do not move.

    It passes for the loader: ``len``, ``set_epoch``, all other attributes and ``isinstance`` are the loader's. With a
    loader that has ``state_dict``, such as torchdata's ``StatefulDataLoader``, ``state_dict`` is the loader's state
    right after the batch that was handed out last: batches that are only prefetched are not lost by resuming.
    ``load_state_dict``, or a new iteration of such a loader or one with persistent workers, ends an iteration that is
    still going on.

    Accelerate and transformers' ``Trainer`` need ``prefetch_prepared``. Lightning cannot make a prefetcher anew with a
    sampler for several GPUs: give the loader its ``DistributedSampler`` yourself.

    An exception of the loader is raised in place of the batch that it belongs to. Leaving a loop early ends the thread.
    With ``num_workers=0`` the dataset runs on the thread, beside the consumer.
    """

    def __init__(self, loader, device=None, depth=2):
        depth = int(depth)
        if depth < 1:
            raise ValueError(f"depth must be at least 1, not {depth}")
        self._source = LoaderSource(loader)
        self._device = device
        self._depth = depth
        self._target = None
        self._feeds = weakref.WeakSet()
        self._newest = None

    def __iter__(self):
        source = self._source
        source.lock_after_fork()
        with source.lock:
            if source.has_one_iterator:
                self._end_iterations("a new iteration of this loader has begun")
            # First the workers, then the device: a forked process cannot use a GPU that was opened before.
            iterator = iter(source.loader)
            if self._target is None:
                self._target = target_for(_native.device(self._device))
            feed = Feed(source, iterator, self._target, self._depth)
            self._feeds.add(feed)
            self._newest = feed
        feed.start()
        return Iteration(feed)

    def __len__(self):
        return len(self._source.loader)

    def _end_iterations(self, reason):
        for feed in list(self._feeds):
            feed.stop(reason)
        self._feeds.clear()

    def _state_dict(self):
        """The loader's state right after the batch that was handed out last."""
        newest = self._newest
        if newest is None:
            with self._source.lock:
                return self._source.loader.state_dict()
        # A copy, because users add to it.
        return copy.deepcopy(newest.state)

    def _load_state_dict(self, state):
        """Sets the loader's state for the next iteration."""
        with self._source.lock:
            self._end_iterations("load_state_dict was called; begin a new iteration")
            self._newest = None
            return self._source.loader.load_state_dict(state)

    @property
    def __class__(self):
        # Accelerate, Lightning and others ask whether it is a DataLoader.
        return self._source.loader.__class__

    def __getattr__(self, name):
        if name in _OWN:
            # Not there yet: a copy that is being made.
            raise AttributeError(name)
        value = getattr(self._source.loader, name)
        # Only loaders with a state have these.
        if name == "state_dict":
            return self._state_dict
        if name == "load_state_dict":
            return self._load_state_dict
        return value

    def __setattr__(self, name, value):
        if name in _OWN:
            object.__setattr__(self, name, value)
        else:
            setattr(self._source.loader, name, value)

    def __reduce__(self):
        return CudaPrefetcher, (self._source.loader, self._device, self._depth)

    def __repr__(self):
        return f"CudaPrefetcher({self._source.loader!r}, device={self._device!r}, depth={self._depth})"


def prefetch_prepared(loader, device=None, depth=2):
    """Prefetches in a loader that ``accelerate.Accelerator.prepare`` returned, and returns it.

    Accelerate makes a loader of its own from the one that it prepares, so a ``CudaPrefetcher`` goes inside that, as
    its ``base_dataloader``. ``device`` is the one that Accelerate moves batches to, if it is not given. With
    transformers' ``Trainer``:

        class PrefetchingTrainer(Trainer):
            def get_train_dataloader(self):
                return pinlane.torch.prefetch_prepared(super().get_train_dataloader())

    A loader that Accelerate did not prepare is wrapped as it is.
    """
    base = getattr(loader, "base_dataloader", None)
    if base is None:
        return CudaPrefetcher(loader, device, depth)
    if type(base) is not CudaPrefetcher:
        if device is None:
            device = getattr(loader, "device", None)
        loader.base_dataloader = CudaPrefetcher(base, device, depth)
    return loader
