"""Devices, streams and events."""

import numpy as np
import pytest

import pinlane


def test_a_device_is_opened_once(gpu):
    assert pinlane.device("sim:h200") == gpu
    assert hash(pinlane.device("sim:h200")) == hash(gpu)
    assert pinlane.device(gpu) == gpu
    assert pinlane.device("sim") == pinlane.device("sim:pcie3-x16") != gpu
    assert str(gpu) == "sim:h200" and gpu.simulated and gpu.ordinal is None
    assert "simulated" in repr(gpu) and "h200" in gpu.model
    free, total = gpu.memory_info()
    assert 0 < free <= total


@pytest.mark.parametrize("name", ["gpu", "sim:unknown", "cuda:x"])
def test_names_that_do_not_exist(name):
    with pytest.raises(pinlane.NoDeviceError, match=name):
        pinlane.device(name)


def test_the_simulator_is_never_a_default():
    if pinlane.device_names():
        pytest.skip("this machine has a GPU")
    for open_it in (pinlane.device, lambda: pinlane.empty(3), lambda: pinlane.to_device(np.ones(3))):
        with pytest.raises(pinlane.NoDeviceError):
            open_it()


def test_what_is_no_device():
    with pytest.raises(TypeError, match="not float"):
        pinlane.device(1.5)


def test_streams_and_events(gpu):
    stream, other = pinlane.Stream(gpu), gpu.stream()
    array = pinlane.to_device(np.arange(1 << 20, dtype="f4"), gpu, stream=stream)
    start = stream.record()
    pinlane.to_device(np.ones(1 << 20, "f4"), out=array, stream=stream)
    end = stream.record(pinlane.Event(gpu))
    other.wait(end)
    other.wait(stream)
    end.synchronize()
    assert start.is_done() and start.elapsed_ms(end) > 0
    stream.synchronize()
    assert stream.is_idle()
    assert (pinlane.to_host(array, stream=other) == 1).all()
    with pytest.raises(TypeError, match="streams of its own only.*not int"):
        other.wait(7)


def test_errors_are_what_python_users_expect():
    assert issubclass(pinlane.Error, RuntimeError)
    assert issubclass(pinlane.OutOfMemoryError, MemoryError)
    assert issubclass(pinlane.PinnedLimitError, MemoryError)
    assert issubclass(pinlane.InvalidInputError, ValueError)
    assert issubclass(pinlane.InvalidDataError, ValueError)
    assert issubclass(pinlane.NotSupportedError, NotImplementedError)


def test_devices_of_streams_and_events_must_agree(gpu):
    other = pinlane.device("sim:null")
    for attempt, message in [
        (lambda: other.stream().wait(gpu.stream().record()), "the event is on sim:h200, but the stream is on sim:null"),
        (lambda: gpu.stream().record(pinlane.Event(other)), "the event is on sim:null, but the stream is on sim:h200"),
        (lambda: pinlane.Event(gpu).elapsed_ms(pinlane.Event(other)), "but the end is on sim:null"),
        (lambda: gpu.stream().wait(other.stream()), "the stream is on sim:null, not on sim:h200"),
        (lambda: pinlane.to_device(np.ones(3), gpu, stream=other.stream()), "the stream is on sim:null, not on sim:h200"),
    ]:
        with pytest.raises(pinlane.InvalidInputError, match=message):
            attempt()


def test_a_simulated_stream_has_no_handle(gpu):
    assert not hasattr(gpu.stream(), "handle")
    for stream in ("x", -1):
        with pytest.raises(TypeError, match=f"streams of its own only.*not {type(stream).__name__}"):
            pinlane.to_device(np.ones(3), gpu, stream=stream)


def test_numbers_that_no_device_has():
    for number in (-1, 1 << 40):
        with pytest.raises(pinlane.InvalidInputError, match=f"no device number {number}; they count from 0"):
            pinlane.device(number)
    with pytest.raises(TypeError, match="not bool"):
        pinlane.device(True)
