from __future__ import annotations

import time

import numpy as np
import pytest

from labkit.errors import SpecError
from labkit.measure.samples import SampleRecorder
from labkit.scenarios import run_scenario, scenario_names
from labkit.scenarios.base import FirstAudio, timed
from tests.scenarios.fakes import REFERENCES, TEXTS, FakeDriver, FakePipeline, spec


def drive(driver: FakeDriver, name: str = "single", **changes) -> SampleRecorder:
    recorder = SampleRecorder()
    run_scenario(name, FakePipeline(driver), spec(**changes), TEXTS, REFERENCES, recorder)
    return recorder


def test_texts_take_turns_and_warmups_come_first_with_the_longest_text() -> None:
    recorder = drive(FakeDriver(), warmups=2, repeats=2)
    order = [(s.phase, s.repetition, s.item) for s in recorder.samples]
    assert order == [
        ("warmup", 0, "b"), ("warmup", 1, "c"),
        ("measured", 0, "a"), ("measured", 0, "b"), ("measured", 0, "c"),
        ("measured", 1, "a"), ("measured", 1, "b"), ("measured", 1, "c"),
    ]  # fmt: skip
    assert [s.order for s in recorder.samples] == list(range(8))


def test_a_sample_holds_rates_and_the_first_audio_of_its_own_call() -> None:
    driver = FakeDriver(samples=12_000)
    sample = drive(driver, warmups=0, repeats=1).samples[0]
    values = sample.values
    assert values["audio_s"] == 0.5 and values["steps"] == 3 and values["ttft_s"] == 0.25
    assert values["rtf"] == pytest.approx(values["latency_s"] / 0.5)
    assert values["rtfx"] == pytest.approx(1 / values["rtf"])
    assert sample.series["step_s"] == [0.1, 0.2]
    assert driver.calls[:2] == [("speak", "one", None), ("first_audio", "one", None)]


def test_no_audio_is_no_rate_and_no_stream_is_no_first_audio() -> None:
    sample = drive(FakeDriver(samples=0, first=FirstAudio(None, "no stream")), warmups=0, repeats=1).samples[
        0
    ]
    assert sample.values["rtf"] is None and "no audio" in sample.reasons["rtf"]
    assert sample.values["ttft_s"] is None and sample.reasons["ttft_s"] == "no stream"


def test_a_driver_of_another_process_brings_its_own_clocks() -> None:
    _, values = timed(FakeDriver(extra={"latency_s": 4.0, "cpu_s": 3.0}), "one", None)
    assert values["latency_s"] == 4.0 and values["cpu_s"] == 3.0 and values["rtf"] == 4.0
    assert values["cpu_yardsticks"] == pytest.approx(3.0 / values["yardstick_s"])  # type: ignore[operator]


def test_keep_gets_each_clip_of_the_first_repetition_once() -> None:
    kept: list[str] = []
    run_scenario(
        "single", FakePipeline(FakeDriver()), spec(repeats=3), TEXTS, {}, SampleRecorder(),
        keep=lambda item, take: kept.append(item),
    )  # fmt: skip
    assert kept == ["a", "b", "c"]


def test_an_unbuilt_scenario_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"'soak'.*replay, single"):
        drive(FakeDriver(), "soak")


@pytest.mark.parametrize("name", scenario_names())
def test_every_listed_scenario_runs(name: str) -> None:
    assert len(drive(FakeDriver(), name, warmups=1, repeats=1).samples) == 4


def test_the_harness_costs_less_than_a_percent_of_a_nano_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of nano speech takes some 100 ms; what stands between the clocks and the driver may take 1 ms."""
    monkeypatch.setattr(
        "labkit.scenarios.base.yardstick_s", lambda: 0.02
    )  # outside of the clocks, on purpose

    class Nothing(FakeDriver):
        def speak(self, text, codes):
            return ready

    ready = FakeDriver().speak("one", None)
    driver, latencies = Nothing(), []
    for _ in range(300):
        latencies.append(timed(driver, "one", None)[1]["latency_s"])
    assert np.median(latencies) < 1e-3 * 0.1
    started = time.perf_counter()
    drive(driver, repeats=50, warmups=0)
    assert (time.perf_counter() - started) / 150 < 5e-3  # recording, outside of the clocks
