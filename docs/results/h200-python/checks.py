"""What must be right: memory shared with other libraries, threads, pinned arrays dropped early, graph capture."""

import gc
import os
import sys
import threading as threading_module
import time

from common import Missing, needed, on_host

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX takes three quarters of the GPU otherwise


# --- memory shared with other libraries -------------------------------------------------------------------------


class Torch:
    """How torch takes, makes, adds one to and finds the address of an array on the GPU."""

    def __init__(self):
        self.torch = needed("torch")
        self.other_stream = self.torch.cuda.Stream()

    def take(self, array):
        return self.torch.from_dlpack(array)

    def address(self, array):
        return array.data_ptr()

    def make(self, x):
        return self.torch.from_numpy(x).cuda()

    def plus_one_elsewhere(self, array):
        """x + 1 on another stream, with the exchange on that stream."""
        with self.torch.cuda.stream(self.other_stream):
            result = self.torch.from_dlpack(array) + 1
        self.other_stream.synchronize()
        return result


class Cupy:
    def __init__(self):
        self.cupy = needed("cupy")
        self.other_stream = self.cupy.cuda.Stream(non_blocking=True)

    def take(self, array):
        return self.cupy.from_dlpack(array)

    def address(self, array):
        return array.data.ptr

    def make(self, x):
        return self.cupy.asarray(x)

    def plus_one_elsewhere(self, array):
        with self.other_stream:
            result = self.cupy.from_dlpack(array) + 1
        self.other_stream.synchronize()
        return result


class CupyByInterface(Cupy):
    """CuPy by `__cuda_array_interface__`."""

    def take(self, array):
        return self.cupy.asarray(array)


class Jax:
    def __init__(self):
        self.jax, self.dlpack = needed("jax"), needed("jax.dlpack")
        if not any(device.platform in ("gpu", "cuda") for device in self.jax.devices()):
            raise Missing("JAX with CUDA")

    def take(self, array):
        return self.dlpack.from_dlpack(array)

    def address(self, array):
        return array.unsafe_buffer_pointer()

    def make(self, x):
        return self.jax.device_put(x).block_until_ready()

    def plus_one_elsewhere(self, array):
        # JAX works on streams of its own.
        return (self.dlpack.from_dlpack(array) + 1).block_until_ready()


class Numba:
    def __init__(self):
        self.cuda = cuda = needed("numba.cuda")
        if not cuda.is_available():
            raise Missing("Numba with CUDA")
        self.other_stream = cuda.stream()

        @cuda.jit
        def plus_one(x, y):
            at = cuda.grid(1)
            if at < x.size:
                y[at] = x[at] + 1

        self.kernel = plus_one

    def take(self, array):
        return self.cuda.as_cuda_array(array)

    def address(self, array):
        return array.__cuda_array_interface__["data"][0]

    def make(self, x):
        return self.cuda.to_device(x)

    def plus_one_elsewhere(self, array):
        taken = self.cuda.as_cuda_array(array)
        result = self.cuda.device_array(taken.shape, taken.dtype)
        self.kernel[(taken.size + 255) // 256, 256, self.other_stream](taken, result)
        self.other_stream.synchronize()
        return result.copy_to_host()


LIBRARIES = {
    "torch": Torch,
    "CuPy": Cupy,
    "CuPy by __cuda_array_interface__": CupyByInterface,
    "JAX": Jax,
    "Numba": Numba,
}


def fetched(array):
    """The array on the host, by its own library."""
    return array.copy_to_host() if hasattr(array, "copy_to_host") else on_host(array).view("f4")


def shared_with(run, library):
    """Round trips with one library, in a process of its own. Returns what was seen."""
    import numpy as np
    import pinlane

    other, x, seen = LIBRARIES[library](), np.random.default_rng(3).random(1 << 20, dtype=np.float32), {}
    device = run.pinlane_device

    def scribble():
        """Takes memory that was freed too early, and overwrites it."""
        return [pinlane.to_device(np.full_like(x, 7), device) for _ in range(4)], [
            other.make(np.full_like(x, 9)) for _ in range(4)
        ]

    def equal(array, expected=x):
        return bool(np.array_equal(fetched(array), expected))

    ours = pinlane.to_device(x, device)
    theirs = other.take(ours)
    seen["pointers equal"] = other.address(theirs) == ours.address
    seen["bytes equal"] = equal(theirs)
    del ours
    gc.collect()
    junk = scribble()
    seen["ours dropped first: intact"] = equal(theirs)
    del theirs, junk
    gc.collect()

    ours = pinlane.to_device(x, device)
    theirs = other.take(ours)
    del theirs
    gc.collect()
    junk = scribble()
    seen["theirs dropped first: intact"] = bool(np.array_equal(pinlane.to_host(ours), x))
    del junk

    made = other.make(x + 2)
    seen["theirs to_host"] = bool(np.array_equal(np.asarray(pinlane.to_host(made)), x + 2))
    if library != "JAX":  # JAX's arrays do not change
        pinlane.to_device(x + 3, out=made)
        run.synchronize()
        seen["theirs as out="] = equal(made, x + 3)

    right = 0
    for turn in range(200):
        ours = pinlane.to_device(x + np.float32(turn), device)
        right += equal(other.plus_one_elsewhere(ours), x + np.float32(turn) + 1)
    seen["a kernel on another stream sees the data, of 200"] = right
    return seen


def torch_side_stream(run):
    """Work on a side stream of torch, delayed by a long kernel, is seen by to_host on that stream."""
    import torch
    import pinlane

    stream, right = torch.cuda.Stream(), 0
    for turn in range(50):
        with torch.cuda.stream(stream):
            tensor = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(2_000_000)
            tensor += turn
            right += bool((pinlane.to_host(tensor) == turn).all())
    run.check("to_host on torch's side stream sees its delayed kernel, 50 times", right == 50, f"{right} right")


def sharing(run):
    """Round trips with torch, CuPy, JAX and Numba, and of pinned arrays with torch on the host."""
    import numpy as np
    import torch
    import pinlane

    run.start_device()
    for first in ("ours", "theirs"):
        ours = pinlane.full(1 << 16, 5, "f4", device=run.pinlane_device)
        theirs, address = torch.from_numpy(ours), ours.ctypes.data
        shared = theirs.data_ptr() == address
        if first == "ours":
            del ours
        else:
            del theirs
        gc.collect()
        junk = [pinlane.full(1 << 16, 6, "f4", device=run.pinlane_device) for _ in range(4)]
        kept = theirs.numpy() if first == "ours" else ours
        run.check(
            f"pinned array and torch on the host: one memory, {first} dropped first", shared and (kept == 5).all()
        )
        del junk, kept
    x = np.arange(1 << 12, dtype="f4")
    run.check(
        "to_device and to_host: bytes equal",
        np.array_equal(pinlane.to_host(pinlane.to_device(x, run.pinlane_device)), x),
    )
    for library in LIBRARIES:
        with run.attempt(f"round trips with {library}"):
            if run.smoke:
                raise Missing("a GPU")
            seen = run.process("shared_with", {"library": library})
            wrong = {name: value for name, value in seen.items() if value not in (True, 200)}
            run.check(f"round trips with {library}", not wrong, f"wrong: {wrong}" if wrong else ", ".join(seen), **seen)
    if not run.smoke:
        with run.attempt("to_host on torch's side stream"):
            torch_side_stream(run)


# --- threads ----------------------------------------------------------------------------------------------------


def counted(seconds):
    """How far a pure Python counter comes on a thread of its own; ends when the returned function is called."""
    state = {"count": 0, "longest": 0.0, "end": False}

    def count():
        last = time.perf_counter()
        while not state["end"]:
            state["count"] += 1
            now = time.perf_counter()
            state["longest"] = max(state["longest"], now - last)
            last = now

    thread = threading_module.Thread(target=count)
    began = time.perf_counter()
    thread.start()

    def stop():
        state["end"] = True
        thread.join()
        return state["count"] / (time.perf_counter() - began), state["longest"]

    if seconds:
        time.sleep(seconds)
        return stop()
    return stop


def threads(run):
    """8 threads upload at once beside a pure Python counter."""
    import numpy as np
    import pinlane

    run.start_device()
    elements, rounds, count = run.pick(16 << 20, 1 << 14), run.pick(40, 3), 8
    sources = [np.full(elements, number, "f4") for number in range(count)]
    alone, _ = counted(1.0 if not run.smoke else 0.1)
    wrong, errors = [], []
    start = threading_module.Barrier(count)

    def work(number):
        try:
            start.wait()
            for turn in range(rounds):
                array = pinlane.to_device(sources[number], run.pinlane_device)
            result = array.numpy()
            if not (result == number).all():
                wrong.append(number)
        except Exception as error:
            errors.append(repr(error))

    stop = counted(None)
    began = time.perf_counter()
    workers = [threading_module.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    beside, longest = stop()
    rate = count * rounds * sources[0].nbytes / seconds / 1e9
    run.check(
        "8 threads upload at once: results right",
        not wrong and not errors,
        f"wrong {wrong}, errors {errors[:2]}; {rate:.1f} GB/s in all",
    )
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    run.check(
        "a pure Python counter goes on",
        beside > 0.02 * alone,
        f"{beside / alone:.2f} of its rate alone; longest pause {longest * 1e3:.1f} ms; GIL: {gil}",
        alone=alone,
        beside=beside,
    )


# --- pinned arrays that are dropped early -----------------------------------------------------------------------


DELAY_CYCLES = 20_000_000  # about 10 ms: copies submitted behind such a kernel wait for it


def dropped(run):
    """A pinned array is dropped while torch copies from it: 10,000 times, 50 behind each delaying kernel."""
    import torch
    import pinlane

    run.start_device()
    elements, group, total = run.pick(1 << 16, 1 << 8), 50, run.pick(10_000, 200)
    targets = torch.zeros(group, elements, device=run.torch_device)
    wrong, pending_groups, most_pinned = 0, 0, 0
    began = time.perf_counter()
    for start in range(0, total, group):
        if not run.smoke:
            torch.cuda._sleep(DELAY_CYCLES)
        for number in range(group):
            array = pinlane.empty(elements, "f4", device=run.pinlane_device)
            array[:] = start + number
            targets[number].copy_(torch.from_numpy(array), non_blocking=True)
            del array
        if not run.smoke:
            pending_groups += not torch.cuda.current_stream().query()
        most_pinned = max(most_pinned, pinlane.pinned_bytes())
        expected = torch.arange(start, start + group, device=run.torch_device, dtype=torch.float32)
        wrong += int((targets != expected[:, None]).any(dim=1).sum())
    seconds = time.perf_counter() - began
    run.check(
        f"pinned arrays dropped while torch copies from them, {total} times",
        wrong == 0,
        f"{wrong} wrong; {pending_groups} of {total // group} groups had copies pending when the last one was dropped; "
        f"at most {most_pinned / 1e6:.0f} MB pinned; {seconds:.1f} s",
        wrong=wrong,
        pending_groups=pending_groups,
    )
    if run.smoke:
        return
    # Shows that the copies above were asynchronous: the same with memory that is overwritten at once.
    torch.cuda._sleep(DELAY_CYCLES)
    array = pinlane.full(elements, 1, "f4", device=run.pinlane_device)
    targets[0].copy_(torch.from_numpy(array), non_blocking=True)
    array[:] = 2
    torch.cuda.synchronize()
    run.check(
        "control: an array that is overwritten behind torch's copy gives other bytes", bool((targets[0] == 2).all())
    )


# --- graph capture ----------------------------------------------------------------------------------------------


def captured(run, mode, act):
    """In a fresh process: does something of Pinlane's during torch's capture of a graph. Returns what came of it."""
    import numpy as np
    import torch
    import pinlane

    pinned = pinlane.full(1 << 20, 3, "f4")
    on_gpu = torch.from_numpy(pinned).cuda(non_blocking=True)
    shared = pinlane.to_device(np.ones(1 << 20, "f4"))
    of_torch = torch.from_dlpack(shared)
    x = torch.ones(1 << 20, device="cuda")
    (x * 2 + 1).sum()  # loads the kernels before the capture
    torch.cuda.synchronize()
    before, graph, seen = pinlane.pinned_bytes(), torch.cuda.CUDAGraph(), {"call": "no error"}
    try:
        with torch.cuda.graph(graph, capture_error_mode=mode):
            y = x * 2
            try:
                if act == "drop a pinned array":
                    del pinned
                elif act == "drop a shared device array":
                    del shared, of_torch
                elif act == "empty":
                    kept = pinlane.empty(1 << 22, "f4")
                elif act == "to_device on the capturing stream":
                    kept = pinlane.to_device(torch.ones(1 << 20))
                elif act == "to_device on an own stream":
                    kept = pinlane.to_device(np.ones(1 << 20, "f4"))
            except Exception as error:
                seen["call"] = f"{type(error).__name__}: {error}"[:300]
            gc.collect()
            time.sleep(0.3)  # for what happens in the background
            z = y + 1
        seen["capture"] = "valid"
        x.fill_(5)
        graph.replay()
        torch.cuda.synchronize()
        seen["replay right"] = bool((z == 11).all())
    except Exception as error:
        seen["capture"] = f"{type(error).__name__}: {error}"[:300]
    try:
        torch.cuda.synchronize()
        later = pinlane.to_device(np.full(1 << 20, 8, "f4"))
        seen["to_device later"] = bool((later.numpy() == 8).all())
        seen["earlier copy intact"] = bool((on_gpu == 3).all())
        time.sleep(0.2)
        seen["pinned bytes before and later"] = (before, pinlane.pinned_bytes())
    except Exception as error:
        seen["later"] = f"{type(error).__name__}: {error}"[:300]
    return seen


def capture(run):
    """What Pinlane does while torch captures a graph: does the capture stay valid?"""
    acts = (
        "nothing",
        "drop a pinned array",
        "drop a shared device array",
        "empty",
        "to_device on the capturing stream",
        "to_device on an own stream",
    )
    for act in acts:
        for mode in ("global", "thread_local", "relaxed"):
            if act == "nothing" and mode != "global":
                continue
            what = f"{act} during torch.cuda.graph ({mode})"
            with run.attempt(what):
                if run.smoke:
                    raise Missing("a GPU")
                seen = run.process("captured", {"mode": mode, "act": act})
                valid = seen.get("capture") == "valid" and seen.get("replay right") and "later" not in seen
                # Only drops must not disturb a capture: a program does not see them. Calls may be refused.
                words = "; ".join(f"{name}: {value}" for name, value in seen.items())
                asked = "valid" if act.startswith(("drop", "nothing")) else "valid, or refused with a clear error"
                run.row(
                    what,
                    asked,
                    words,
                    bool(valid) if act.startswith(("drop", "nothing")) else None,
                    is_check=True,
                    **seen,
                )
