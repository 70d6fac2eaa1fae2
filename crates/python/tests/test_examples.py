"""Every example runs on a simulated GPU."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "examples"


def run(name, *arguments):
    command = [sys.executable, str(FOLDER / name), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == 1 and "NVIDIA's compiler" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def test_upload():
    out = run("upload.py", "sim:pcie3-x16")
    assert "SIMULATED" in out
    driver, pinned, express = (float(line.split()[-2]) for line in out.splitlines() if line.endswith("GB/s"))
    assert 1.8 < pinned / driver < 2.1
    assert driver < express < pinned


def test_dot_product():
    out = run("dot_product.py", "sim:pcie3-x16")
    assert "SIMULATED" in out
    rows = {line.split()[0]: line.split() for line in out.splitlines() if " ms" in line}
    assert list(rows) == ["standard", "pinned", "express"]
    total = {name: float(row[5]) for name, row in rows.items()}
    # On the simulator's clock: 6 GB/s and 12 GB/s.
    assert 1.8 < total["standard"] / total["pinned"] < 2.1
    assert total["pinned"] < total["express"] < total["standard"]


def test_timeline(tmp_path):
    out = run("timeline.py", "sim:h200", str(tmp_path / "timeline.svg"))
    assert "SIMULATED" in out and "GB/s" in out
    assert (tmp_path / "timeline.svg").read_text().startswith("<svg")


def test_every_example_is_tested():
    tests = pathlib.Path(__file__).parent.glob("test_*.py")
    tested = "".join(test.read_text() for test in tests)
    for example in FOLDER.glob("*.py"):
        assert f'"{example.name}"' in tested, example.name
