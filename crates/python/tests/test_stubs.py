"""The committed stubs say what the package has: names, parameters, defaults, methods."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import pinlane

pytest.importorskip("mypy")

PACKAGE = pathlib.Path(pinlane.__file__).parent


def stubtest(folder):
    """Compares the stubs of the package in a folder with its modules."""
    modules = [f"pinlane.{stub.stem}" for stub in sorted((folder / "pinlane").glob("*.pyi"))]
    assert "pinlane._native" in modules
    environment = {**os.environ, "PYTHONPATH": str(folder), "MYPYPATH": str(folder)}
    command = [sys.executable, "-m", "mypy.stubtest", *modules]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)


def test_stubs_are_those_of_the_module():
    found = stubtest(PACKAGE.parent)
    assert found.returncode == 0, found.stdout + found.stderr


DIFFERENCES = [
    ("_native.pyi", "def pinned_bytes() -> int: ...", "", "_native.pinned_bytes is not present in stub"),
    ("_native.pyi", "def trim(self) -> int: ...", "", "Device.trim is not present in stub"),
    ("_native.pyi", "def unpin(self)", "def unpins(self)", "Pinned.unpins is not present at runtime"),
    ("_native.pyi", "*args: Any,\n    stream", "*args: Any,\n    streams", "_native.launch is inconsistent"),
    ("_data_loader.pyi", "prefetch: int = 3", "prefetch: int = 4", "DataLoader.__init__ is inconsistent"),
]


def test_stubs_that_differ_are_found(tmp_path):
    package = shutil.copytree(PACKAGE, tmp_path / "pinlane", ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new, _ in DIFFERENCES:
        text = (package / file).read_text()
        assert old in text, old
        (package / file).write_text(text.replace(old, new))
    found = stubtest(tmp_path)
    assert found.returncode == 1
    for *_, message in DIFFERENCES:
        assert message in found.stdout, found.stdout


def test_every_public_name_has_a_docstring():
    assert sorted(pinlane.__all__) == pinlane.__all__
    for name in pinlane.__all__:
        value = getattr(pinlane, name)
        if callable(value):
            assert value.__doc__, name
    assert (PACKAGE / "py.typed").is_file()


PROGRAM = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import pinlane

gpu = pinlane.device("sim:h200")
x = pinlane.to_device(np.ones(3), gpu)
assert_type(x, pinlane.DeviceArray)
assert_type(pinlane.to_device(np.ones(3), out=x), pinlane.DeviceArray)
assert_type(pinlane.to_host(x), NDArray[Any])
assert_type(x.numpy(), NDArray[Any])
assert_type(pinlane.empty((2, 3), "f4"), NDArray[Any])
assert_type(pinlane.pin_memory({"a": 1}), dict[str, int])
with pinlane.Timeline(gpu) as timeline:
    timeline.save("a.svg")
pinlane.compile("", options=["-G"]).kernel("a")(1, (2, 3), x, 1.0, stream=gpu.stream())
for batch in pinlane.DataLoader({"x": np.ones(3)}, 2, framework="pt"):
    print(batch["x"])
pinlane.synchronize()
pinlane.torch.CudaPrefetcher([1, 2], gpu)
with pinlane.transformers.fast_loading(gpu):
    pass
try:
    pinlane.pin(np.ones(3)).unpin()
except pinlane.OutOfMemoryError as error:
    raise error from None
"""


def test_a_type_checker_knows_the_types(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "wrong.py").write_text("import pinlane\npinlane.device(1.5)\npinlane.empty()\npinlane.nothing\n")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "MYPYPATH": str(PACKAGE.parent)}

    def mypy(file):
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, file]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    right = mypy("program.py")
    assert right.returncode == 0, right.stdout
    wrong = mypy("wrong.py")
    assert wrong.stdout.count("error:") == 3, wrong.stdout
