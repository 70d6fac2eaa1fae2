"""CudaPrefetcher over real loaders, on a simulated device: order, errors, nests, ends, forks."""

import collections
import copy
import dataclasses
import gc
import pickle
import subprocess
import sys
import textwrap
import threading
import traceback
import typing

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")
data = torch.utils.data

import pinlane
import pinlane.torch
from pinlane.torch import CudaPrefetcher


class Numbers(data.Dataset):
    """Item ``i`` is the number ``i``, eight times."""

    def __init__(self, length=10, fails_at=None):
        self.length = length
        self.fails_at = fails_at

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == self.fails_at:
            raise ValueError(f"sample {index} is broken")
        return torch.full((8,), float(index))


def loader_of(length=10, **options):
    return data.DataLoader(Numbers(length), **{"batch_size": 2, **options})


def first_numbers(batches):
    return [int(batch.numpy()[0, 0]) for batch in batches]


def prefetch_threads():
    return [thread for thread in threading.enumerate() if thread.name == "pinlane-prefetch"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    for thread in prefetch_threads():
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("depth", [1, 2, 20])
def test_batches_come_in_order_epoch_after_epoch(depth):
    prefetcher = CudaPrefetcher(loader_of(), "sim:h200", depth)
    for _ in range(3):
        batches = list(prefetcher)
        assert all(type(batch) is pinlane.DeviceArray for batch in batches)
        assert first_numbers(batches) == [0, 2, 4, 6, 8]
        assert batches[1].numpy().tolist() == [[2.0] * 8, [3.0] * 8]


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers(context):
    loader = loader_of(num_workers=1, multiprocessing_context=context, persistent_workers=True)
    prefetcher = CudaPrefetcher(loader, "sim:h200")
    for _ in range(2):
        assert first_numbers(prefetcher) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_break_with_workers(persistent):
    prefetcher = CudaPrefetcher(loader_of(num_workers=2, persistent_workers=persistent), "sim:h200")
    for _ in range(3):
        for batch in prefetcher:
            assert batch.numpy()[0, 0] == 0
            break
    assert first_numbers(prefetcher) == [0, 2, 4, 6, 8]


Named = collections.namedtuple("Named", "x y")


class Typed(typing.NamedTuple):
    x: object
    label: str


@dataclasses.dataclass
class Record:
    x: object
    name: str


class Opaque:
    def __init__(self, x):
        self.x = x


def test_nests_keep_their_shape():
    x = np.arange(3)
    opaque = Opaque(x)
    nest = {
        "dict": {"x": x},
        "ordered": collections.OrderedDict(x=x),
        "list": [x, "text", 3, None, b"bytes"],
        "tuple": (x, 2.5),
        "named": Named(x, {"y": x}),
        "typed": Typed(x, "label"),
        "record": Record(x, "name"),
        "strings": np.array(["a", "b"]),
        "objects": np.array([None]),
        "opaque": opaque,
    }
    (batch,) = CudaPrefetcher([nest], "sim:h200")

    def check(value):
        assert value.numpy().tolist() == [0, 1, 2]

    check(batch["dict"]["x"])
    check(batch["ordered"]["x"])
    assert type(batch["ordered"]) is collections.OrderedDict
    check(batch["list"][0])
    assert batch["list"][1:] == ["text", 3, None, b"bytes"]
    check(batch["tuple"][0])
    assert batch["tuple"][1] == 2.5
    check(batch["named"].x)
    check(batch["named"].y["y"])
    check(batch["typed"].x)
    assert batch["typed"].label == "label"
    check(batch["record"].x)
    assert batch["record"].name == "name"
    assert batch["strings"].tolist() == ["a", "b"]
    assert batch["objects"].tolist() == [None]
    assert batch["opaque"] is opaque



def test_a_dict_of_another_class_keeps_what_else_it_holds():
    source = collections.defaultdict(list, x=np.arange(2))
    (batch,) = CudaPrefetcher([source], "sim:h200")
    assert batch.default_factory is list
    assert batch["x"].numpy().tolist() == [0, 1]
    assert type(source["x"]) is np.ndarray


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.zeros((0, 3), "i4"),
        np.array(2.5),
        np.arange(4, dtype=">i4"),
        np.arange(4).astype(ml_dtypes.bfloat16),
        np.broadcast_to(np.arange(3), (2, 3)),
        np.arange(3 << 20, dtype="u1"),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_of_all_kinds(array):
    (batch,) = CudaPrefetcher([array], "sim:h200")
    back = batch.numpy()
    assert back.shape == array.shape and back.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).T,
        torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.arange(3).expand(2, 3),
        torch.tensor(3, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]).conj(),
    ],
    ids=lambda tensor: f"{tensor.dtype}{tuple(tensor.shape)}",
)
def test_tensors_of_all_kinds(tensor):
    (batch,) = CudaPrefetcher([tensor], "sim:h200")
    assert batch.shape == tuple(tensor.shape)
    back = batch.numpy()
    expected = tensor.resolve_conj()
    expected = expected.float().numpy() if expected.dtype == torch.bfloat16 else expected.numpy()
    np.testing.assert_array_equal(back.astype(expected.dtype), expected)


def test_many_small_arrays_beside_a_large_one():
    large = np.arange(1 << 20, dtype="f4")
    batch = {"large": large, "small": [np.full(3, number) for number in range(200)]}
    (moved,) = CudaPrefetcher([batch], "sim:h200")
    np.testing.assert_array_equal(moved["large"].numpy(), large)
    for number, array in enumerate(moved["small"]):
        assert array.numpy().tolist() == [number] * 3


def test_pinned_batches():
    batches = [pinlane.full(1 << 19, number, "f4", device="sim:h200") for number in range(4)]
    moved = list(CudaPrefetcher(batches, "sim:h200"))
    assert [batch.numpy().mean() for batch in moved] == [0, 1, 2, 3]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_is_raised_in_place_of_its_batch(workers):
    loader = data.DataLoader(Numbers(10, fails_at=4), batch_size=2, num_workers=workers)
    batches = iter(CudaPrefetcher(loader, "sim:h200"))
    assert first_numbers([next(batches), next(batches)]) == [0, 2]
    with pytest.raises(ValueError, match="sample 4 is broken") as raised:
        next(batches)
    where = "".join(traceback.format_exception(raised.value))
    assert "__getitem__" in where
    # A DataLoader goes on after an error, and so does the prefetcher.
    assert first_numbers(batches) == [6, 8]
    with pytest.raises(StopIteration):
        next(batches)


def test_the_end_of_a_generator_that_failed():
    def generate():
        yield np.zeros(1)
        raise KeyError("lost")

    batches = iter(CudaPrefetcher(generate(), "sim:h200"))
    next(batches)
    with pytest.raises(KeyError, match="lost"):
        next(batches)
    assert list(batches) == []


def test_a_batch_that_cannot_be_copied_raises():
    indices, values = torch.tensor([[0, 1]]), torch.ones(2)
    sparse = torch.sparse_coo_tensor(indices, values, (3,), check_invariants=True)
    with pytest.raises(TypeError, match="dense"):
        list(CudaPrefetcher([sparse], "sim:h200"))


def test_an_iterator_that_cannot_begin_raises_at_once():
    with pytest.raises(TypeError, match="not iterable"):
        iter(CudaPrefetcher(3, "sim:h200"))
    with pytest.raises(pinlane.Error):
        iter(CudaPrefetcher([1], "sim:no-such-device"))
    with pytest.raises(ValueError, match="depth must be at least 1, not 0"):
        CudaPrefetcher([1], depth=0)


class Counting:
    """A loader that counts what was fetched, and waits for leave to go on after some."""

    def __init__(self, free=100):
        self.fetched = 0
        self.free = threading.Semaphore(free)

    def __iter__(self):
        for number in range(100):
            self.free.acquire()
            self.fetched += 1
            yield np.full(4, number)


def test_it_is_depth_batches_ahead_and_no_more():
    # The fifth batch is fetched only when the second was handed out, whatever time passes.
    for depth in (1, 3):
        loader = Counting()
        batches = iter(CudaPrefetcher(loader, "sim:h200", depth))
        for number in range(5):
            assert next(batches).numpy()[0] == number
            assert loader.fetched <= number + 1 + depth
        batches.close()


def test_the_copy_runs_ahead_of_the_consumer():
    loader = Counting(free=0)
    batches = iter(CudaPrefetcher(loader, "sim:h200", 2))
    for _ in range(3):
        loader.free.release()
    next(batches)
    # Without another request of the consumer, the thread fetches two more.
    while loader.fetched < 3:
        threading.Event().wait(0.001)
    batches.close()
    loader.free.release()


def test_a_closed_iteration_is_at_its_end():
    batches = iter(CudaPrefetcher(loader_of(), "sim:h200"))
    next(batches)
    batches.close()
    assert list(batches) == []
    batches.close()


def test_memory_of_batches_that_nobody_took_is_freed(gpu):
    gpu.trim()
    before = gpu.stats()["device"]
    batches = iter(CudaPrefetcher([np.zeros(1 << 20)] * 10, "sim:h200", 3))
    next(batches)
    batches.close()
    for thread in prefetch_threads():
        thread.join(30)
    gc.collect()
    gpu.synchronize()
    gpu.trim()
    assert gpu.stats()["device"] == before


def test_nested_iterations_are_independent():
    prefetcher = CudaPrefetcher(loader_of(4), "sim:h200")
    pairs = [(first_numbers([a])[0], first_numbers([b])[0]) for a in prefetcher for b in prefetcher]
    assert pairs == [(0, 0), (0, 2), (2, 0), (2, 2)]


def test_a_new_iteration_with_persistent_workers_ends_the_one_before():
    prefetcher = CudaPrefetcher(loader_of(num_workers=1, persistent_workers=True), "sim:h200")
    first = iter(prefetcher)
    next(first)
    assert first_numbers(prefetcher) == [0, 2, 4, 6, 8]
    for _ in range(2):
        with pytest.raises(RuntimeError, match="new iteration"):
            next(first)


def test_it_passes_for_the_loader():
    loader = loader_of(drop_last=True)
    loader.set_epoch = lambda epoch: setattr(loader, "epoch", epoch)
    prefetcher = CudaPrefetcher(loader, "sim:h200")
    assert isinstance(prefetcher, data.DataLoader)
    assert isinstance(prefetcher, CudaPrefetcher)
    assert prefetcher.__class__ is data.DataLoader
    assert len(prefetcher) == 5
    assert prefetcher.dataset is loader.dataset
    assert prefetcher.batch_size == 2 and prefetcher.drop_last
    prefetcher.set_epoch(3)
    assert loader.epoch == 3
    prefetcher.marked = True
    assert loader.marked
    assert not hasattr(prefetcher, "state_dict")
    assert not hasattr(prefetcher, "nothing")
    with pytest.raises(TypeError):
        len(CudaPrefetcher(iter([])))


def test_copies_and_pickles():
    prefetcher = CudaPrefetcher(loader_of(), "sim:h200", 3)
    for other in (copy.copy(prefetcher), pickle.loads(pickle.dumps(prefetcher))):
        assert type(other) is CudaPrefetcher
        assert repr(other).endswith("device='sim:h200', depth=3)")
        assert first_numbers(other) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_the_interpreter_ends_during_an_iteration(context, tmp_path):
    # The iterator is still in use, the thread waits for room, the workers for it.
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import torch
            from pinlane.torch import CudaPrefetcher

            if __name__ == "__main__":
                loader = torch.utils.data.DataLoader(torch.arange(100.0), 4, num_workers=1,
                                                     multiprocessing_context="{context}")
                batches = iter(CudaPrefetcher(loader, "sim:h200"))
                print(next(batches).numpy())
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0. 1. 2. 3.]\n", "")


def test_a_forked_child_is_refused_without_a_wait():
    # The thread that holds the loader's lock during the fork does not exist in the child.
    program = """
        import os, threading, numpy as np
        from pinlane.torch import CudaPrefetcher

        parent, fetching, may_go_on = os.getpid(), threading.Event(), threading.Event()

        class Loader:
            def __iter__(self):
                yield np.zeros(1)
                if os.getpid() == parent:
                    fetching.set()
                    may_go_on.wait()
                yield np.ones(1)

        prefetcher = CudaPrefetcher(Loader(), "sim:h200")
        batches = iter(prefetcher)
        next(batches)
        fetching.wait()
        child = os.fork()
        if child == 0:
            for attempt in (lambda: next(batches), lambda: list(prefetcher)):
                try:
                    attempt()
                except RuntimeError as error:
                    print("a forked child cannot use" in str(error))
            raise SystemExit
        print(os.waitpid(child, 0)[1])
        may_go_on.set()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    expected = "True\nTrue\n0\n"
    assert (done.stdout, done.stderr) == (expected, "")


def test_ctrl_c_ends_the_wait():
    program = """
        import os, signal, threading, numpy as np
        import pinlane._prefetch
        from pinlane.torch import CudaPrefetcher

        pinlane._prefetch.EXIT_WAIT_S = 0  # the thread does not end by itself
        first_is_there = threading.Event()

        def generate():
            yield np.zeros(1)
            first_is_there.wait()
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait()

        batches = iter(CudaPrefetcher(generate(), "sim:h200"))
        next(batches)
        try:
            first_is_there.set()
            next(batches)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
