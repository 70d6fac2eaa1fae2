"""What all sections share: settings, the device, timing in turns, rows of the report, processes."""

import contextlib
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD_SCRIPTS = os.path.join(os.path.dirname(HERE), "h200-load")


class Missing(Exception):
    """Something that a section needs is not installed, or not part of the package."""


class Run:
    """Settings of one run, the device, and the file that rows go to."""

    def __init__(self, settings, results):
        self.settings, self.results = settings, results
        self.smoke = settings["smoke"]
        self.data = settings["data"]
        self.pinlane_device = "sim:h200" if self.smoke else "cuda:0"
        self.torch_device = "cpu" if self.smoke else "cuda"
        self.began = time.perf_counter()

    def pick(self, real, smoke):
        """A size or a count: that of a real run, or the tiny one."""
        return smoke if self.smoke else real

    def has_time(self, seconds):
        """Whether so many seconds are left of this section's time."""
        return time.perf_counter() - self.began + seconds < self.settings["section_s"]

    # --- the device

    def start_device(self):
        """Makes the CUDA context, by torch."""
        import torch

        torch.zeros(1, device=self.torch_device)
        self.synchronize()

    def synchronize(self):
        if not self.smoke:
            import torch

            torch.cuda.synchronize()

    def torch_upload(self, tensor, **arguments):
        """`tensor.cuda()`; a copy on the CPU in the smoke run."""
        return tensor.clone() if self.smoke else tensor.cuda(**arguments)

    # --- rows

    def row(self, what, asked, measured, met=None, **figures):
        """Writes a row. `met` is None where nothing is asked; a smoke run judges nothing but checks of results."""
        if self.smoke and met is not None and not figures.get("is_check"):
            met = None
        row = {"what": what, "asked": asked, "measured": measured, "met": met, "figures": figures}
        row["load"] = os.getloadavg()[0]
        with open(self.results, "a") as file:
            file.write(json.dumps(row, default=str) + "\n")

    def check(self, what, passed, detail="", **figures):
        """A row about something that is right or wrong, also in a smoke run."""
        words = ("yes" if passed else "NO") + (f"; {detail}" if detail else "")
        self.row(what, "yes", words, bool(passed), is_check=True, **figures)

    @contextlib.contextmanager
    def attempt(self, what):
        """Turns an error into a row, so that the rest of the section runs."""
        try:
            yield
        except Missing as missing:
            self.row(what, "", f"missing: {missing}")
        except Exception as error:
            self.row(
                what,
                "",
                f"failed: {type(error).__name__}: {first_line(error)}",
                False,
                is_check=True,
                traceback=traceback.format_exc(),
            )

    # --- processes

    def process(self, part, options=None, environment=None, timeout=120):
        """Runs a part in a new process, and returns what it returns."""
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results")
            command = [sys.executable, os.path.join(HERE, "measure.py"), "--part", part, "--results", results]
            command += ["--settings", json.dumps(self.settings), "--options", json.dumps(options or {})]
            done = subprocess.run(
                command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=timeout
            )
            if done.returncode != 0:
                raise RuntimeError(f"{part} ended with {done.returncode}\n{done.stderr[-4000:]}")
            with open(results) as file:
                returned = json.load(file)
        if "missing" in returned:
            raise Missing(returned["missing"])
        return returned["value"]

    def tool(self, *words):
        """What the command `pinlane` prints as JSON: the given release binary, or the one of the package."""
        tool = self.settings["tool"]
        command = [tool] if tool else [sys.executable, "-m", "pinlane"]
        command += ["--device", self.pinlane_device, "--json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr[-2000:]}")
        return json.loads(done.stdout)


def first_line(error):
    lines = str(error).splitlines()
    return lines[0][:200] if lines else ""


def optional(name):
    """A module, or None where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


def needed(name, attribute=None):
    """A module, or an attribute of it; Missing where it is not there."""
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise Missing(f"{name} ({type(error).__name__}: {first_line(error)})") from error
    if attribute is None:
        return module
    if not hasattr(module, attribute):
        raise Missing(f"{name}.{attribute}")
    return getattr(module, attribute)


# --- timing ---------------------------------------------------------------------------------------------------------


class Times:
    """Seconds of the calls of one way. The first call of the process is kept apart."""

    def __init__(self, size=None):
        self.size, self.first, self.later, self.error = size, None, [], None

    def add(self, seconds):
        if self.first is None:
            self.first = seconds
        else:
            self.later.append(seconds)

    @property
    def median(self):
        return statistics.median(self.later) if self.later else self.first

    def rate(self, seconds=None):
        return self.size / (self.median if seconds is None else seconds) / 1e9

    def text(self):
        if self.first is None:
            return "failed"
        later = self.later or [self.first]
        if self.size is None:
            return f"{self.median * 1e3:.2f} ms ({min(later) * 1e3:.2f} to {max(later) * 1e3:.2f})"
        return f"{self.rate():.1f} GB/s ({self.rate(max(later)):.1f} to {self.rate(min(later)):.1f})"

    def figures(self):
        return {
            "bytes": self.size,
            "first_s": self.first,
            "later_s": self.later,
            "error": self.error,
            "median_s": self.median,
            "gb_per_s": self.rate() if self.size and self.first else None,
        }


def in_turns(run, ways, rounds, size=None, check=None, pause_s=0.0):
    """Times all ways in turns: one call each, `rounds` times after the first.

    Every second turn goes backwards, so that none always follows the same other one. The clock stops when the device
    is idle. What a call returns is freed before the next one starts. `check(name, result)` is called with the first
    result of each way, outside of the clock. A way that fails is left out from then on, with its error. `pause_s` lies
    between calls where device memory is given back to the driver: what copies next would pay for that.
    """
    times = {name: Times(size) for name in ways}
    for turn in range(1 + rounds):
        for name in list(ways) if turn % 2 == 0 else list(ways)[::-1]:
            if times[name].error:
                continue
            gc.collect()
            run.synchronize()
            time.sleep(pause_s)
            try:
                began = time.perf_counter()
                result = ways[name]()
                run.synchronize()
                times[name].add(time.perf_counter() - began)
                if turn == 0 and check:
                    check(name, result)
            except Exception as error:
                times[name].error = "".join(traceback.format_exception(error))
                missing = isinstance(error, Missing)
                words = f"missing: {error}" if missing else f"failed: {type(error).__name__}: {first_line(error)}"
                run.row(name, "", words, None if missing else False, is_check=True, traceback=times[name].error)
            result = None
    return times


def ratio(times, ours, theirs):
    """How many times faster ours is, by the medians; None if one of them failed."""
    pair = times.get(ours), times.get(theirs)
    if any(one is None or one.first is None for one in pair):
        return None
    return pair[1].median / pair[0].median


def ratio_row(run, what, times, ours, theirs, at_least, **figures):
    """A row that says how many times faster ours is than theirs, with both figures."""
    found = ratio(times, ours, theirs)
    if found is None:
        without = [name for name in (ours, theirs) if name not in times or times[name].first is None]
        run.row(what, f"{at_least}x", f"no figure of {' and of '.join(without)}")
        return
    words = f"{found:.2f}x: {times[ours].text()} against {times[theirs].text()}"
    run.row(
        what,
        f"{at_least}x",
        words,
        found >= at_least,
        ratio=found,
        ours=times[ours].figures(),
        theirs=times[theirs].figures(),
        **figures,
    )


def share_row(run, what, rate, of_rates, at_least):
    """A row that says which share of other figures, of which the highest counts, a rate is."""
    if not of_rates:
        run.row(what, f"{at_least}", f"{rate:.1f} GB/s; no figure to compare with")
        return
    share = rate / max(of_rates)
    others = ", ".join(f"{other:.1f}" for other in of_rates)
    run.row(
        what,
        f"{at_least}",
        f"{share:.3f}: {rate:.1f} GB/s against {others}",
        share >= at_least,
        share=share,
        rates=of_rates,
    )


# --- values ---------------------------------------------------------------------------------------------------------


def on_host(array):
    """An array of any library as a NumPy array of its bytes, fetched by the library that it belongs to."""
    import numpy as np

    if type(array).__module__.split(".")[0] == "pinlane":
        array = array.numpy()
    elif hasattr(array, "data_ptr"):
        import torch

        return array.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy()
    elif hasattr(array, "get"):
        array = array.get()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def same_bytes(a, b):
    import numpy as np

    return np.array_equal(on_host(a), on_host(b))
