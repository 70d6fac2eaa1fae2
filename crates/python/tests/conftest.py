"""Fixtures. Everything runs on the simulated GPU, or on libcuda's symbols over it (see ``on_simcuda``)."""

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import pinlane


@pytest.fixture
def gpu():
    """A simulated H200."""
    return pinlane.device("sim:h200")


@pytest.fixture(scope="session")
def simcuda_folder(tmp_path_factory):
    """A folder with a libcuda that is the simulator, and looks like a real GPU's."""
    built = os.environ.get("PINLANE_SIMCUDA")
    if built is None:
        pytest.skip("PINLANE_SIMCUDA is not set; run `cargo xtask python`")
    library = pathlib.Path(built, "libcuda.so.1").read_bytes()
    # This symbol tells Pinlane that the device is simulated. Under another name it is not found.
    marker = b"pinlane_simcuda_profile"
    assert marker in library
    folder = tmp_path_factory.mktemp("simcuda")
    (folder / "libcuda.so.1").write_bytes(library.replace(marker, b"hidden_" + marker[7:]))
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    return folder


@pytest.fixture
def on_simcuda(simcuda_folder, tmp_path):
    """Runs a program in a new process in which ``cuda:0`` is the simulated GPU under libcuda's symbols.

    It fails if the program does, or if the simulator reports misuse.
    """

    def run(program, **variables):
        report = tmp_path / "report"
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(simcuda_folder),
            "PINLANE_SIMCUDA_REPORT": str(report),
            **variables,
        }
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        wrong = [line for line in report.read_text().splitlines() if line.startswith("misuse")]
        assert not wrong, wrong
        return done.stdout

    return run
