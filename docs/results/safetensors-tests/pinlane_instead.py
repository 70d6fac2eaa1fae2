"""A pytest plugin: what safetensors' own tests import for reading is Pinlane's. Writing stays safetensors'."""

import pytest
import safetensors
import safetensors.numpy
import safetensors.torch

import pinlane

calls = {"safe_open": 0, "load_file": 0}
tests_that_read = set()


class CountedSafeOpen(pinlane.safe_open):
    def __init__(self, *arguments, **options):
        calls["safe_open"] += 1
        super().__init__(*arguments, **options)


def load_file_torch(filename, device="cpu", *, backend=None):
    calls["load_file"] += 1
    return pinlane.load_file(filename, device)


def load_file_numpy(filename, *, backend=None):
    calls["load_file"] += 1
    return pinlane.load_file(filename, "cpu", framework="np")


for module in (safetensors, safetensors.numpy, safetensors.torch):
    module.safe_open = CountedSafeOpen
safetensors.torch.load_file = load_file_torch
safetensors.numpy.load_file = load_file_numpy


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    before = sum(calls.values())
    yield
    if sum(calls.values()) > before:
        tests_that_read.add(item.nodeid)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"calls of Pinlane: {calls}, in {len(tests_that_read)} tests")
