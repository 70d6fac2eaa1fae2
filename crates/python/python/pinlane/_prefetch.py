"""The thread that fetches batches from a loader and copies them to the device ahead of the consumer."""

import atexit
import copy
import os
import queue
import threading
import weakref
from collections import deque

from ._batch_upload import hand_out, upload

_END = object()


class Item:
    """What the thread hands to the consumer: a batch, an error, or the end. ``state`` is the loader's, right after."""

    def __init__(self, batch=None, error=None, is_last=False, state=None):
        self.batch = batch
        self.error = error
        self.is_last = is_last
        self.state = state


class LoaderSource:
    """A loader. One thread at a time uses it, whatever number of iterations there are."""

    def __init__(self, loader):
        self.loader = loader
        self.lock = threading.Lock()
        self._process = os.getpid()

    def lock_after_fork(self):
        """A new lock in a forked child, in which the thread that may hold the old one does not exist."""
        if os.getpid() != self._process:
            self.lock = threading.Lock()
            self._process = os.getpid()

    @property
    def is_stateful(self):
        return hasattr(self.loader, "state_dict")

    @property
    def has_one_iterator(self):
        """Whether a new iteration ends the one before: persistent workers are reset, and a state is one position."""
        has_workers = getattr(self.loader, "num_workers", 0) > 0
        return self.is_stateful or (has_workers and getattr(self.loader, "persistent_workers", False))

    def snapshot(self):
        """The loader's state, for this moment: some loaders return one that changes as they go on."""
        return copy.deepcopy(self.loader.state_dict()) if self.is_stateful else None


class Feed:
    """What the thread and the consumer of one iteration share. It keeps neither of them."""

    def __init__(self, source, iterator, target, depth):
        self.target = target
        #: State of the loader after the last batch that the consumer has.
        self.state = source.snapshot()
        self._source = source
        self._iterator = iterator
        self._depth = depth
        self._ready = queue.SimpleQueue()
        self._slots = threading.Semaphore(depth)
        self._is_stopped = False
        self._stop_reason = None
        #: Points in the consumer's stream, one for each batch that it got.
        self._marks = deque()
        self._process = os.getpid()

    def start(self):
        thread = threading.Thread(target=self._run, name="pinlane-prefetch", daemon=True)
        _end_at_exit(self, thread)
        thread.start()

    def _run(self):
        is_last = False
        while not is_last:
            self._slots.acquire()
            if self._is_stopped:
                break
            item = self._next_item()
            is_last = item.is_last
            self._ready.put(item)
            # Memory of the batch is the consumer's now.
            del item
        # Ends workers of the loader that nobody needs any more.
        self._iterator = None
        if self._is_stopped:
            self._drain()

    def _next_item(self):
        state = None
        try:
            with self._source.lock:
                if self._is_stopped:
                    return Item(is_last=True)
                batch = next(self._iterator, _END)
                state = self._source.snapshot()
            if batch is _END:
                return Item(is_last=True, state=state)
            self._wait_for_consumer()
            return Item(upload(batch, self.target), state=state)
        except Exception as error:
            # The loader may be able to go on; if not, it says so again.
            return Item(error=error, state=state)
        except BaseException as error:
            return Item(error=error, is_last=True, state=state)

    def _wait_for_consumer(self):
        """Bounds the device memory of a consumer that submits work faster than the device does it."""
        while len(self._marks) > self._depth:
            mark = self._marks.popleft()
            if mark is not None:
                mark.synchronize()

    def take(self):
        """The next batch on the device. Raises what the loader raised, and StopIteration at the end."""
        if os.getpid() != self._process:
            message = "the process was forked during the iteration; a forked child cannot use its parent's device"
            raise RuntimeError(message)
        item = self._ready.get()
        if self._stop_reason is not None:
            self._ready.put(item)
            # A new error each time: one that is kept, keeps by its traceback all that the frames hold.
            raise RuntimeError(self._stop_reason)
        if item.is_last:
            # For those who ask again.
            self._ready.put(Item(is_last=True, state=item.state))
        self._slots.release()
        if item.state is not None:
            self.state = item.state
        if item.error is not None:
            try:
                raise item.error
            finally:
                # The traceback has this frame: no cycle that keeps the batch and the loader.
                del item
        if item.is_last:
            raise StopIteration
        value = hand_out(item.batch, self.target)
        self._marks.append(self.target.mark())
        return value

    def stop(self, reason=None):
        """Ends the thread after the batch that it works on. The consumer gets the reason as an error."""
        if os.getpid() != self._process:
            # In a forked child there is no thread, and its locks may be held for good.
            return
        self._stop_reason = self._stop_reason or reason
        self._is_stopped = True
        self._slots.release()
        self._drain()
        self._ready.put(Item(is_last=True))

    def _drain(self):
        """Frees batches that nobody is going to get."""
        kept = None
        try:
            while True:
                item = self._ready.get_nowait()
                if item.is_last:
                    kept = item
        except queue.Empty:
            if kept is not None:
                self._ready.put(kept)


class Iteration:
    """One pass over a loader. When nobody holds it any more, its thread ends."""

    def __init__(self, feed):
        self._feed = feed

    def __iter__(self):
        return self

    def __next__(self):
        return self._feed.take()

    def close(self):
        """Ends it before the end. Again: nothing."""
        self._feed.stop()

    def __del__(self):
        # Not there if the constructor failed.
        feed = self.__dict__.get("_feed")
        if feed is not None:
            feed.stop()


#: Feeds and threads that may be running.
_running = weakref.WeakKeyDictionary()
_running_lock = threading.Lock()
_is_registered = False

#: How long the end of the interpreter waits for a thread whose loader does not come back, in seconds.
EXIT_WAIT_S = 10


def _end_at_exit(feed, thread):
    """Stops the thread before Python and the loader's workers go away."""
    global _is_registered
    with _running_lock:
        _running[feed] = thread
        if not _is_registered:
            # Now, not at import: handlers run in reverse order, and torch's for its workers comes after this one.
            _is_registered = True
            atexit.register(_end_all)


def _end_all():
    with _running_lock:
        running = list(_running.items())
    for feed, _ in running:
        feed.stop()
    for _, thread in running:
        thread.join(EXIT_WAIT_S)
