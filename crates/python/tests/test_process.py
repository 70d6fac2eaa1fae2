"""Threads, forks, signals, and the end of the interpreter."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import pinlane


def run(program, timeout=60, **variables):
    """Runs a program in a new process. It must exit with 0 and print nothing to stderr."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {**os.environ, **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_threads_upload_at_once_while_python_goes_on(gpu):
    wrong, counted, stop = [], [], threading.Event()

    def count():
        number = 0
        while not stop.is_set():
            number += 1
        counted.append(number)

    def upload(thread):
        for step in range(30):
            # Some through the express lane, some small, each with a value of its own.
            source = np.full((1 << 18) >> (step % 12), thread * 1000 + step, "i4")
            array = pinlane.to_device(source, gpu)
            if step % 3 == 0:
                array = array.reshape(-1, 1).reshape(-1)
            if not (array.numpy() == thread * 1000 + step).all():
                wrong.append((thread, step))

    counter = threading.Thread(target=count)
    threads = [threading.Thread(target=upload, args=(number,)) for number in range(8)]
    counter.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    counter.join()
    assert wrong == [] and counted[0] > 0


def test_a_copy_does_not_hold_the_interpreter(on_simcuda):
    """While the device holds a copy, other threads run: a thread lets it go."""
    on_simcuda(
        """
import threading, numpy as np, pinlane
gpu = pinlane.device("cuda:0")
first, second = gpu.stream(), gpu.stream()
x = pinlane.to_device(np.ones(1 << 20), gpu)
done = []
def wait():
    first.synchronize()
    done.append(x.numpy().sum())
threads = [threading.Thread(target=wait) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert done == [1 << 20] * 4
"""
    )


def test_import_opens_nothing_and_imports_little():
    out = run(
        """
        import sys, time
        start = time.perf_counter()
        import pinlane
        took = time.perf_counter() - start
        wrong = {"numpy", "torch", "cupy", "jax", "ml_dtypes", "ctypes", "typing", "pathlib"} & set(sys.modules)
        assert not wrong, wrong
        maps = open("/proc/self/maps").read()
        assert "libcuda" not in maps and "libnvrtc" not in maps
        assert len(__import__("os").listdir("/proc/self/task")) == 1
        print(f"import took {took * 1e3:.1f} ms")
        """
    )
    print(out)


def test_submodules_are_imported_when_they_are_used():
    program = """
        import sys, pinlane
        names = {"diffusers", "sglang", "torch", "transformers", "vllm"}
        assert names <= set(dir(pinlane)), dir(pinlane)
        assert not any(f"pinlane.{name}" in sys.modules for name in names)
        for name in names - {"torch"}:
            assert getattr(pinlane, name) is sys.modules[f"pinlane.{name}"], name
        assert "torch" not in sys.modules and "transformers" not in sys.modules
        assert not hasattr(pinlane, "tensorflow")
        try:
            pinlane.torch.CudaPrefetcher
        except ModuleNotFoundError as error:
            assert error.name == "torch", error
    """
    run(program)


FORK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: a process with threads forks
def child(program):
    '''Runs a function in a forked child, which must end normally. Returns what it prints.'''
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)  # one that hangs is killed
        os.dup2(write, 1)
        program()
        sys.stdout.flush()
        sys.exit(0)  # with all finalizers
    os.close(write)
    with os.fdopen(read) as output:
        printed = output.read()
    assert os.waitpid(pid, 0)[1] == 0, printed
    return printed
import numpy as np, pinlane
"""


def test_a_forked_child_may_use_what_was_only_imported(on_simcuda):
    on_simcuda(
        FORK
        + """
def use():
    print(int(pinlane.to_device(np.ones(1000), "cuda:0").numpy().sum()))
assert child(use) == "1000\\n"
use()
"""
    )


def test_a_forked_child_of_an_open_device_gets_a_clear_error(on_simcuda):
    on_simcuda(
        FORK
        + """
array = pinlane.to_device(np.ones(1 << 20), "cuda:0")
pinned = pinlane.zeros(1000)
stream = pinlane.Stream()
copy = pinlane.to_device(pinned, stream=stream, blocking=False)
capsule = array.__dlpack__()
def use():
    for attempt in (
        lambda: pinlane.to_device(np.ones(1000), "cuda:0"),
        lambda: array.numpy(),
        lambda: pinlane.zeros(1 << 20, device="cuda:0"),
        lambda: pinlane.synchronize("cuda:0"),
        lambda: pinlane.Stream("cuda:0"),
        lambda: next(iter(pinlane.DataLoader(np.ones((9, 9)), 3, device="cuda:0"))),
        lambda: pinlane.Timeline("cuda:0").__enter__(),
    ):
        try:
            attempt()
        except pinlane.Error as error:
            print("fork" in str(error))
        else:
            print("nothing was raised")
assert child(use) == "True\\n" * 7, child(use)
np.testing.assert_array_equal(array.numpy(), 1)  # the parent goes on
"""
    )


REFUSED = """
def refused(*attempts):
    # Prints whether each of these calls is refused because of the fork.
    for attempt in attempts:
        try:
            attempt()
        except pinlane.Error as error:
            print("forked child" in str(error))
        else:
            print("nothing was raised")
"""


def test_a_fork_during_an_iteration():
    """The child has no worker threads: it gets an error in place of a batch, and exits without a word."""
    run(
        FORK
        + REFUSED
        + """
loader = pinlane.DataLoader(np.ones((1000, 8)), 10, device="sim:h200", num_workers=2)
batches = iter(loader)
next(batches)
def use():
    refused(lambda: next(batches), lambda: list(batches), lambda: list(loader), loader.state_dict, loader.stats)
assert child(lambda: None) == ""
assert child(use) == "True\\n" * 5, child(use)
assert len(list(batches)) == 99  # the parent goes on
assert len(list(loader)) == 100
"""
    )


def test_a_fork_during_a_load(tmp_path):
    run(
        FORK
        + REFUSED
        + f"""
path = {str(tmp_path / "model.safetensors")!r}
import safetensors.numpy
safetensors.numpy.save_file({{str(number): np.ones(1 << 18, "f4") for number in range(20)}}, path)
tensors = pinlane.iter_tensors(path, "sim:h200", device_bytes=2 << 20)
next(tensors)
assert child(lambda: None) == ""
assert child(lambda: refused(lambda: next(tensors))) == "True\\n"
assert len(list(tensors)) == 19
"""
    )


def test_a_fork_while_another_thread_copies():
    """The copy may hold locks of the device, which the child can never get."""
    run(
        FORK
        + REFUSED
        + """
import threading
gpu = pinlane.device("sim:h200")
source, pinned, array = np.ones(1 << 20), pinlane.zeros(1000, "f8", device=gpu), pinlane.to_device(np.ones(1000), gpu)
stream = gpu.stream()
event = stream.record()
live = [array.reshape(10, 100), pinlane.pin(np.ones(5000), device=gpu), pinlane.Timeline(gpu).__enter__()]
started, stop = threading.Event(), threading.Event()
def copy():
    while not stop.is_set():
        pinlane.to_device(source, gpu).numpy()
        started.set()
thread = threading.Thread(target=copy)
def use():
    refused(
        lambda: pinlane.to_device(source, gpu),
        lambda: pinlane.to_device(source, "sim:null"),
        lambda: pinlane.to_device(pinned, out=array),
        lambda: pinlane.upload_many([pinned], [array]),
        array.numpy,
        lambda: pinlane.empty(1000, device=gpu),
        lambda: pinlane.is_pinned(pinned, device=gpu),
        lambda: pinlane.pin(source, device=gpu),
        gpu.stream,
        gpu.synchronize,
        gpu.stats,
        gpu.trim,
        gpu.memory_info,
        stream.synchronize,
        stream.is_idle,
        stream.record,
        lambda: stream.wait(event),
        event.is_done,
        event.synchronize,
        live[1].unpin,
        pinlane.Timeline,
    )
thread.start()
started.wait()
try:
    for _ in range(20):
        printed = child(use)
        assert printed == "True\\n" * 21, printed
finally:
    stop.set()
    thread.join()
"""
    )


LIVE = """
import threading, numpy as np, pinlane
gpu = pinlane.device(DEVICE)
arrays = [pinlane.to_device(np.ones(1 << 18), gpu) for _ in range(5)]
streams = [gpu.stream() for _ in range(3)]
pinned = pinlane.zeros(1 << 20, device=gpu)
locked = pinlane.pin(np.ones(1 << 16), device=gpu)
copies = [pinlane.to_device(pinned, gpu, stream=stream, blocking=False) for stream in streams]
events = [stream.record() for stream in streams]
lost = pinlane.Timeline(gpu).__enter__()
loader = pinlane.DataLoader(np.ones((100, 100)), 10, device=gpu)
batch = next(iter(loader))
class Cycle: pass
cycle = Cycle()
cycle.own, cycle.held = cycle, (arrays[0], streams, pinned)
"""


@pytest.mark.parametrize("ends", ["", "import sys; sys.exit()", "import gc; gc.disable(); del loader"])
def test_exit_with_live_objects(ends):
    assert run(LIVE.replace("DEVICE", "'sim:h200'") + ends) == ""


def test_exit_with_live_objects_of_a_gpu(on_simcuda):
    out = on_simcuda(
        LIVE.replace("DEVICE", "'cuda:0'")
        + """
capsules = [array.__dlpack__() for array in arrays] + [batch.__dlpack__(stream=-1)]
interfaces = [array.__cuda_array_interface__ for array in arrays]
"""
    )
    assert out == ""


def test_exit_while_a_daemon_thread_copies():
    program = """
        import threading, numpy as np, pinlane
        gpu = pinlane.device("sim:h200")
        x = np.ones(1 << 20)
        started = threading.Event()
        def copy():
            while True:
                pinlane.to_device(x, gpu).numpy()
                started.set()
        for _ in range(3):
            threading.Thread(target=copy, daemon=True).start()
        started.wait()
    """
    for _ in range(3):
        assert run(program) == ""


def test_what_is_dropped_on_another_thread(on_simcuda):
    on_simcuda(
        """
import gc, queue, threading, numpy as np, pinlane
gpu = pinlane.device("cuda:0")
dropped = queue.Queue()
def drop():
    while True:
        values = dropped.get()
        if values is None: break
        values.clear()
threads = [threading.Thread(target=drop) for _ in range(4)]
for thread in threads: thread.start()
for number in range(100):
    array = pinlane.to_device(np.full(1000, number, "i4"), gpu)
    pinned = pinlane.full(1000, number, "i4", device=gpu)
    stream = gpu.stream()
    copy = pinlane.to_device(pinned, gpu, stream=stream, blocking=False)
    dropped.put([array.__dlpack__(), array, pinned, stream, pinlane.pin(np.ones(5000), device=gpu)])
    assert (copy.numpy() == number).all()
    dropped.put([copy])
for _ in threads: dropped.put(None)
for thread in threads: thread.join()
del array, pinned, stream, copy; gc.collect()
gpu.synchronize(); gpu.trim()
stats = gpu.stats()
assert stats["device"] == 0 and stats["registered"] == 0, stats
"""
    )


INTERRUPTED = """
import signal, sys, threading, numpy as np, pinlane
WAIT
try:
    print("ready", flush=True)
    wait()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

# What waits for longer than the test runs: a dataset that never returns a sample.
LOADER = """
import time
ended = threading.Event()
class Never:
    def __len__(self): return 10
    def __getitem__(self, index):
        if threading.current_thread() is not threading.main_thread(): ended.wait(60)
        return 1
loader = pinlane.DataLoader(Never(), 2, device="sim:h200", num_workers=2)
def interrupt(*_):
    # First, because the end of the iteration waits for the samples that are being read.
    ended.set()
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, interrupt)
def wait():
    next(iter(loader))
"""


def test_ctrl_c_ends_a_wait_for_a_batch():
    program = INTERRUPTED.replace("WAIT", LOADER)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    # The wait may not have begun yet. Then the signal interrupts Python itself, which is as good.
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("interrupted\n", 0), err


def test_round_trips_share_memory_in_either_order_of_deletion(on_simcuda):
    on_simcuda(
        """
import gc, numpy as np, pinlane
class Consumer:
    '''Another library's array, made by DLPack: it keeps the capsule.'''
    def __init__(self, producer, version):
        self.capsule = producer.__dlpack__(stream=1, max_version=version)
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **arguments): return self.capsule
class Interface:
    '''Another library's array, made by __cuda_array_interface__: it keeps the object.'''
    def __init__(self, producer): self.producer, self.__cuda_array_interface__ = producer, producer.__cuda_array_interface__

x = np.arange(1000, dtype="f4")
for version in (None, (1, 0)):
    for is_first in (True, False):
        array = pinlane.to_device(x)
        consumer = Consumer(array, version)
        if is_first:
            del array; gc.collect()
            np.testing.assert_array_equal(pinlane.to_host(consumer), x)
            del consumer
        else:
            del consumer; gc.collect()
            np.testing.assert_array_equal(array.numpy(), x)
            del array
array = pinlane.to_device(x)
interface = Interface(array)
address = interface.__cuda_array_interface__["data"][0]
assert address == array.address == array.reshape(10, 100).address
pinlane.to_device(x * 2, out=interface)
np.testing.assert_array_equal(array.numpy(), x * 2)
del array; gc.collect()
np.testing.assert_array_equal(pinlane.to_host(interface), x * 2)
del interface; gc.collect()
gpu = pinlane.device()
gpu.synchronize(); gpu.trim()
assert gpu.stats()["device"] == 0, gpu.stats()
"""
    )


def test_the_command_runs_other_programs():
    """The package carries the library that is preloaded into them, and the simulated libcuda."""
    command = [sys.executable, "-m", "pinlane", "--device", "sim:h200", "boost", "--", "sh", "-c", "echo ran; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "ran\n"), done.stderr
    assert "no copies were seen" in done.stderr
