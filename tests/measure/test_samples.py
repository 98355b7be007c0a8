from __future__ import annotations

import pytest

from labkit.measure.samples import SampleRecorder


def test_warmups_are_kept_and_kept_apart() -> None:
    recorder = SampleRecorder()
    recorder.add("warmup", 0, "a", {"latency_s": 9.0})
    recorder.add("measured", 0, "a", {"latency_s": 1.0}, series={"step_s": [0.1, 0.2]})
    recorder.add("measured", 1, "a", {"latency_s": 2.0}, series={"step_s": [0.3]})
    assert recorder.measured("latency_s") == [1.0, 2.0]
    assert recorder.series("step_s") == [0.1, 0.2, 0.3]
    assert [sample.order for sample in recorder.samples] == [0, 1, 2]


def test_a_null_needs_its_reason() -> None:
    recorder = SampleRecorder()
    with pytest.raises(ValueError, match="ttft_s"):
        recorder.add("measured", 0, "a", {"ttft_s": None, "rtf": 1.0})
    sample = recorder.add("measured", 0, "a", {"ttft_s": None}, reasons={"ttft_s": "no stream"})
    assert recorder.measured("ttft_s") == [] and sample.values["ttft_s"] is None


def test_each_sample_is_told_at_once() -> None:
    heard: list[str] = []
    recorder = SampleRecorder(on_sample=lambda sample: heard.append(sample.item))
    recorder.add("measured", 0, "a", {})
    assert heard == ["a"]
