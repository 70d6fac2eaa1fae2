"""Timeline: what a device did, as data and as pictures."""

import base64
import json

import numpy as np
import pytest

import pinlane

MIB = 1 << 20


@pytest.fixture
def timeline(gpu):
    x = pinlane.zeros(4 * MIB, "u1", device=gpu)
    on_gpu = pinlane.to_device(x, gpu)
    stream = gpu.stream()
    with pinlane.Timeline(gpu, title="There and back") as timeline:
        pinlane.to_device(x, out=on_gpu)
        pinlane.to_host(on_gpu, out=x, stream=stream)
    pinlane.to_device(x, out=on_gpu)
    return timeline


def test_spans_are_the_work_of_the_block(timeline):
    spans = timeline.spans
    there = [span for span in spans if span["kind"] == "host to device"]
    back = [span for span in spans if span["kind"] == "device to host"]
    assert sum(span["bytes"] for span in there) == sum(span["bytes"] for span in back) == 4 * MIB
    assert len(there) + len(back) == len(spans)
    assert {span["stream"] for span in there} == {0} and {span["stream"] for span in back} == {1}
    assert min(span["start_ns"] for span in spans) == 0
    assert max(span["end_ns"] for span in there) <= min(span["start_ns"] for span in back)
    # 4 MiB at 55 GB/s, on the simulator's clock.
    assert 70_000 < sum(span["end_ns"] - span["start_ns"] for span in there) < 150_000


def test_it_draws_itself_and_says_that_it_is_simulated(timeline, tmp_path):
    assert "There and back" in str(timeline) and "SIMULATED" in str(timeline)
    assert repr(timeline) == '<pinlane.Timeline "There and back" of sim:h200>'
    html = timeline._repr_html_()
    svg = base64.b64decode(html.split("base64,")[1].split('"')[0]).decode()
    assert svg == timeline.svg() and "SIMULATED" in svg
    for name, start in [("a.svg", "<svg"), ("a.html", "<!doctype html>"), ("a.json", "{"), ("a.txt", "There and back")]:
        timeline.save(tmp_path / name)
        text = (tmp_path / name).read_text()
        assert text.lower().startswith(start.lower()) and "SIMULATED" in text
    json.loads((tmp_path / "a.json").read_text())
    with pytest.raises(FileNotFoundError, match=r"^\[Errno 2\] No such file or directory: '/no/such/folder.svg'$"):
        timeline.save("/no/such/folder.svg")
    with pytest.raises(ValueError, match="must end in"):
        timeline.save("a.png")
    with pytest.raises(FileNotFoundError):
        timeline.save(tmp_path / "none" / "a.svg")


def test_before_the_end_there_is_nothing(gpu):
    timeline = pinlane.Timeline(gpu)
    assert timeline.device == gpu and timeline.title == "Timeline"
    with timeline:
        assert timeline._repr_html_() is None and "not recorded yet" in str(timeline)
        with pytest.raises(RuntimeError, match="end of its with block"):
            timeline.spans
        with pytest.raises(RuntimeError, match="another timeline"), pinlane.Timeline("sim:h200"):
            pass
    assert timeline.spans == []


def test_exceptions_end_it_and_it_can_be_used_again(gpu):
    timeline = pinlane.Timeline(gpu)
    with pytest.raises(ZeroDivisionError), timeline:
        pinlane.to_device(np.zeros(MIB, "u1"), gpu)
        1 / 0
    assert timeline.spans
    with timeline:
        pass
    assert timeline.spans == []


def test_a_timeline_that_was_never_left_stops_with_its_object(gpu):
    lost = pinlane.Timeline(gpu)
    lost.__enter__()
    pinlane.to_device(np.zeros(MIB, "u1"), gpu)
    del lost
    with pinlane.Timeline(gpu) as timeline:
        pass
    assert timeline.spans == []
