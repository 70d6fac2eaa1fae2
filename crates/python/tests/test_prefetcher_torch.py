"""What the prefetcher asks of torch on a GPU, in which order, and for which tensors.

There is no GPU here. ``torch.cuda`` is a stand-in that writes down the calls, memory is the CPU's, and copies are
torch's own; the calls' names and parameters are compared with the real ``torch.cuda``.
"""

import contextlib
import inspect
import threading
import types

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pinlane._batch_upload as copies
import pinlane.torch
from pinlane._batch_upload import TorchTarget, hand_out, upload
from pinlane._prefetch import Feed, Iteration, LoaderSource


class Calls:
    """A stand-in for ``torch.cuda`` that writes down what it is asked, and by which thread's stream."""

    def __init__(self):
        self.log = []
        self.current = "consumer"
        outer = self

        class Event:
            made = 0

            def __init__(self, enable_timing=False, blocking=False):
                self.name = f"event{Event.made}"
                self.blocking = blocking
                self.is_done = threading.Event()
                Event.made += 1

            def record(self, stream):
                outer.log.append(("record", self.name, stream.name))

            def synchronize(self):
                assert self.blocking
                self.is_done.wait(30)
                outer.log.append(("synchronize", self.name))

        class Stream:
            cuda_stream = 77

            def __init__(self, name="side", device=None):
                self.name = name

            def record_event(self):
                event = Event()
                event.record(self)
                return event

            def wait_event(self, event):
                outer.log.append(("wait", self.name, event.name))

        self.Event, self.Stream = Event, Stream

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream.name
        yield
        self.current = before

    def current_stream(self, device):
        return self.Stream(self.current)


class Recorded(torch.Tensor):
    """A tensor that writes down ``record_stream``, in place of one in device memory."""

    calls = None

    def record_stream(self, stream):
        self.calls.log.append(("record_stream", stream.name))


@pytest.fixture
def cuda(monkeypatch):
    calls = Calls()
    monkeypatch.setattr(torch, "cuda", calls)
    monkeypatch.setattr(copies, "_side_streams", {})
    monkeypatch.setattr(Recorded, "calls", calls)

    def allocate(self, shape, dtype):
        calls.log.append(("allocate", calls.current))
        return torch.empty(tuple(shape), dtype=dtype).as_subclass(Recorded)

    monkeypatch.setattr(TorchTarget, "_allocate", allocate)

    def copy_into(source, out, stream, blocking):
        assert (stream, blocking) == (77, False)
        assert out.is_contiguous()
        source = source if isinstance(source, torch.Tensor) else torch.from_numpy(source.copy())
        assert source.is_contiguous() and source.shape == out.shape and source.dtype == out.dtype
        calls.log.append(("copy", calls.current))
        out.copy_(source)

    def upload_many(sources, out, *, stream):
        calls.log.append(("many", len(out)))
        for source, target in zip(sources, out):
            copy_into(source, target, stream, False)
            calls.log.pop()

    monkeypatch.setattr(copies._native, "copy_into", copy_into)
    monkeypatch.setattr(copies._native, "upload_many", upload_many)
    # A tensor on the "GPU" of the stand-in stays on the CPU.
    monkeypatch.setattr(TorchTarget, "move", lambda self, x: moved(calls, x))
    return calls


def moved(calls, x):
    calls.log.append(("move", calls.current))
    return x


def test_the_calls_exist_in_torch():
    assert "device" in str(inspect.signature(torch.cuda.Stream.__new__))
    assert {"enable_timing", "blocking"} <= set(inspect.signature(torch.cuda.Event.__new__).parameters)
    assert list(inspect.signature(torch.cuda.Event.record).parameters)[:2] == ["self", "stream"]
    assert list(inspect.signature(torch.cuda.Stream.wait_event).parameters) == ["self", "event"]
    assert "event" in inspect.signature(torch.cuda.Stream.record_event).parameters
    assert "device" in inspect.signature(torch.cuda.current_stream).parameters
    assert "stream" in inspect.signature(torch.cuda.stream).parameters
    assert callable(torch.Tensor.record_stream) and callable(torch.cuda.Event.synchronize)


def test_the_order_of_a_batch(cuda):
    target = TorchTarget(0)
    batch = upload({"x": torch.arange(3.0)}, target)
    assert cuda.log == [("allocate", "side"), ("copy", "side"), ("record", "event0", "side")]
    cuda.log.clear()
    value = hand_out(batch, target)
    # First the wait, then the memory is the consumer's too.
    assert cuda.log == [("wait", "consumer", "event0"), ("record_stream", "consumer")]
    assert value["x"].tolist() == [0, 1, 2]
    assert cuda.current == "consumer"


def test_one_side_stream_for_all(cuda):
    assert TorchTarget(0)._stream is TorchTarget(0)._stream
    assert TorchTarget(0)._stream is not TorchTarget(1)._stream


def test_small_arrays_are_copied_together(cuda):
    large = torch.zeros(copies.SMALL_BYTES // 4 + 1)
    upload([torch.ones(3), large, np.ones(3)], TorchTarget(0))
    assert [call for call in cuda.log if call[0] in ("copy", "many")] == [("copy", "side"), ("many", 2)]


def test_arrays_of_numpy_become_tensors(cuda):
    arrays = [np.arange(4, dtype="f4"), np.array([True]), np.arange(3, dtype=">i2"), np.float64(2), np.array(["a"])]
    target = TorchTarget(0)
    value = hand_out(upload(arrays, target), target)
    assert [tensor.dtype for tensor in value[:3]] == [torch.float32, torch.bool, torch.int16]
    assert value[2].tolist() == [0, 1, 2]
    assert type(value[3]) is np.float64 and type(value[4]) is np.ndarray


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 1, 1)])
def test_channels_last_stays(cuda, shape):
    images = torch.rand(*shape).to(memory_format=torch.channels_last)
    target = TorchTarget(0)
    value = hand_out(upload(images, target), target)
    assert value.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(value.as_subclass(torch.Tensor), images)


@pytest.mark.parametrize(
    "tensor",
    [torch.arange(12).reshape(3, 4).T, torch.arange(3).expand(2, 3), torch.arange(10)[::2], torch.tensor(3)],
)
def test_views(cuda, tensor):
    target = TorchTarget(0)
    value = hand_out(upload(tensor, target), target)
    assert torch.equal(value.as_subclass(torch.Tensor), tensor)


class Graph:
    """Moves itself, as torch_geometric's batches do."""

    def to(self, device, non_blocking):
        raise AssertionError("replaced by the stand-in")

    def pin_memory(self):
        raise AssertionError("its memory is pageable, or pinned by the loader")

    def record_stream(self, stream):
        Recorded.calls.log.append(("graph", stream.name))


class Movable:
    def __init__(self, pinned=False):
        self.pinned = pinned

    def to(self, device, non_blocking):
        raise AssertionError("replaced by the stand-in")

    def pin_memory(self):
        return Movable(True)


def test_objects_that_move_themselves(cuda, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    target = TorchTarget(0)
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])
    graph = Graph()
    batch = upload({"graph": graph, "movable": Movable(), "packed": packed}, target)
    # What can be told of the consumer's stream goes ahead, the rest on that stream.
    assert [call for call in cuda.log if call[0] == "move"] == [("move", "side")]
    cuda.log.clear()
    value = hand_out(batch, target)
    assert [call for call in cuda.log if call[0] == "move"] == [("move", "consumer")] * 2
    assert ("graph", "consumer") in cuda.log
    assert value["graph"] is graph
    assert value["movable"].pinned
    assert type(value["packed"]) is type(packed) and value["packed"].batch_sizes.device.type == "cpu"


def test_an_object_that_cannot_move_asynchronously():
    class Plain:
        def to(self, device):
            return device

    target = types.SimpleNamespace(_device=torch.device("cpu"))
    assert TorchTarget.move(target, Plain()) == torch.device("cpu")
    assert TorchTarget.move(target, torch.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("tensor", "where"),
    [
        (torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), check_invariants=True), "consumer"),
        (torch.nn.Parameter(torch.ones(2)), "side"),
        (torch.ones(2, requires_grad=True), "side"),
        (torch.tensor([1 + 2j]).conj(), "side"),
        (torch.empty(2, dtype=torch.float4_e2m1fn_x2), "side"),
    ],
    ids=["sparse", "parameter", "gradient", "conjugate", "unknown type"],
)
def test_tensors_that_torch_moves(cuda, monkeypatch, tensor, where):
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: None)
    target = TorchTarget(0)
    value = hand_out(upload((tensor, 1), target), target)
    assert [call for call in cuda.log if call[0] == "move"] == [("move", where)]
    assert value[0] is tensor


def test_the_consumer_is_at_most_depth_batches_ahead_of_the_device(cuda):
    source = LoaderSource([torch.full((2,), number) for number in range(20)])
    feed = Feed(source, iter(source.loader), TorchTarget(0), depth=2)
    batches = Iteration(feed)
    marks = []
    original = feed.target.mark

    def mark():
        marks.append(original())
        return marks[-1]

    feed.target.mark = mark
    feed.start()
    taken = [next(batches) for _ in range(3)]
    # Three batches are in use and the device has done none of them, so the thread waits with the next ones: only what
    # it had begun before comes.
    while not feed._ready.empty():
        taken.append(next(batches))
    assert len(taken) <= 3 + 2 + 1
    assert not any(call[0] == "synchronize" for call in cuda.log)
    for event in marks:
        event.is_done.set()
    # Later ones are done at once.
    original_init = cuda.Event.__init__

    def done_at_once(self, *arguments, **options):
        original_init(self, *arguments, **options)
        self.is_done.set()

    cuda.Event.__init__ = done_at_once
    taken += list(batches)
    assert [int(batch[0]) for batch in taken] == list(range(20))
    assert any(call[0] == "synchronize" for call in cuda.log)
