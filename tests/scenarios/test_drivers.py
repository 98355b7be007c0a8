from __future__ import annotations

import numpy as np
import pytest

from labkit.scenarios.base import timed
from labkit.scenarios.drivers import StagesDriver, driver_for
from labkit.scenarios.upstream import take_of
from labkit.spec import Recipe, RunSpec
from labkit.upstream.pipeline import UpstreamSpoken
from labkit.voices import Voice
from tests.scenarios.fakes import FakeDriver, FakePipeline, spec


@pytest.fixture(scope="module")
def pipeline(tiny_voice: Voice, tmp_path_factory: pytest.TempPathFactory):
    from labkit.pipeline import open_pipeline

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        with open_pipeline(Recipe(name="torch-fp32"), tiny_voice) as opened:
            yield opened


def tiny_spec(**changes) -> RunSpec:
    return RunSpec(recipe=Recipe(name="torch-fp32"), **changes)


def test_a_pipeline_with_a_driver_of_its_own_is_driven_by_it() -> None:
    own = FakeDriver()
    assert driver_for(FakePipeline(own), spec()) is own


def test_given_codes_are_said_and_every_part_is_timed(pipeline) -> None:
    codes = np.random.default_rng(0).integers(0, 625, (12, 4))
    take, values = timed(StagesDriver(pipeline, tiny_spec()), "one two", codes)
    assert np.array_equal(take.codes, codes) and take.ended
    assert values["steps"] == 12 and values["audio_s"] == pytest.approx((512 * 12 - 256) / 24_000)
    parts = ("prepare_s", "prefill_s", "decode_s", "sample_s", "decoder_s", "vocoder_s")
    assert 0 < sum(values[name] for name in parts) <= values["latency_s"]
    assert values["steps_per_s"] == pytest.approx(len(take.series["step_s"]) / values["decode_s"])


def test_the_same_seed_says_the_same_and_stops_at_the_maximum(pipeline) -> None:
    driver = StagesDriver(pipeline, tiny_spec(max_steps=9, seed=4))
    first, second = driver.speak("one", None), driver.speak("one", None)
    assert np.array_equal(first.codes, second.codes) and len(first.codes) <= 9
    assert first.ended or "hit_max" in first.flags


def test_first_audio_comes_before_the_whole(pipeline) -> None:
    driver = StagesDriver(pipeline, tiny_spec())
    codes = np.random.default_rng(0).integers(0, 625, (150, 4))
    driver.speak("one", codes)
    first = min(driver.first_audio("one", codes).seconds or 9.0 for _ in range(3))
    whole = min(timed(driver, "one", codes)[1]["latency_s"] for _ in range(3))
    assert 0 < first < whole


def spoken(**changes) -> UpstreamSpoken:
    values = {
        "audio": (np.zeros(2400, np.float32),), "codes": (np.zeros((5, 4), np.int64),), "hidden": (np.zeros((5, 8)),),
        "ended": (True,), "prefill_s": 0.2, "step_s": (0.1, 0.3), "decoder_s": 0.05, "vocoder_s": 0.05, "cpu_s": 0.6,
        "total_s": 0.7, "rss_bytes": 1, "peak_rss_bytes": 2,
    }  # fmt: skip
    return UpstreamSpoken(**{**values, **changes})


def test_upstream_s_own_clocks_become_the_sample_s() -> None:
    take = take_of(spoken(), replayed=False)
    assert take.values["latency_s"] == 0.7 and take.values["cpu_s"] == 0.6
    assert take.values["decode_s"] == pytest.approx(0.4) and take.values["steps_per_s"] == pytest.approx(5.0)
    assert take.series["step_s"] == [0.1, 0.3] and take.flags == ()


def test_what_upstream_never_came_to_has_no_time() -> None:
    empty = np.zeros((0, 4), np.int64)
    take = take_of(spoken(codes=(empty,), decoder_s=None, vocoder_s=None, step_s=()), replayed=False)
    assert take.flags == ("immediate_end",)
    nulls = {name for name, value in take.values.items() if value is None}
    assert nulls == {"decoder_s", "vocoder_s", "steps_per_s"} == set(take.reasons)


def test_upstream_that_did_not_stop_is_flagged_unless_it_was_told_what_to_say() -> None:
    assert take_of(spoken(ended=(False,)), replayed=False).flags == ("hit_max",)
    assert take_of(spoken(ended=(False,)), replayed=True).flags == ()
