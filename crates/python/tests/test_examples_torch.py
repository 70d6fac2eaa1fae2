"""The examples that need torch run as they are, and say that the device is simulated."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    ("name", "lines"),
    [("dataloader.py", ["as usual", "with CudaPrefetcher"]), ("model.py", ["4 tensors, equal", "2.1 MB one by one"])],
)
def test_an_example(name, lines):
    command = [sys.executable, EXAMPLES / name, "--device", "sim:h200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout.splitlines()[0]
    for line in lines:
        assert line in done.stdout
