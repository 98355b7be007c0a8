"""Statistics are computed on reading, from measured samples only; what is missing is missing, with its reason."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.results.frames import long_frame, wide_frame, wide_row
from labkit.results.schema import ClipScore, Measures, Sample
from tests.results.factory import TEXTS, document, failed

positive = st.floats(1e-6, 1e6)


def sample(order: int, phase: str = "measured", item: str = "a", **values: float | None) -> Sample:
    reasons = {name: "no streaming here" for name, value in values.items() if value is None}
    return Sample(phase=phase, repetition=order, item=item, order=order, values=values, reasons=reasons)


@given(st.lists(positive, min_size=1, max_size=30), st.lists(positive, max_size=3))
def test_quantiles_are_those_of_the_measured_samples(measured: list[float], warmups: list[float]) -> None:
    taken = [sample(i, "warmup", latency_s=v) for i, v in enumerate(warmups)]
    taken += [sample(i, latency_s=v) for i, v in enumerate(measured)]
    numbers = wide_row(document(samples=taken)).numbers
    for quantile in (50, 90, 95, 99):
        assert numbers[f"latency_s_p{quantile}"] == pytest.approx(np.percentile(measured, quantile))
    assert numbers["samples_n"] == len(measured)


def test_a_metric_missing_in_every_sample_is_null_with_its_reason() -> None:
    row = wide_row(document(samples=[sample(0, ttft_s=None), sample(1, ttft_s=None)]))
    assert row.numbers["ttft_s_p50"] is None
    assert row.reasons["ttft_s_p50"] == "no streaming here"
    frame = wide_frame([row])
    assert frame["ttft_s_p50"].isna().all()
    assert pd.api.types.is_numeric_dtype(frame["ttft_s_p50"])


def test_a_metric_missing_in_one_sample_uses_the_others() -> None:
    row = wide_row(document(samples=[sample(0, ttft_s=None), sample(1, ttft_s=0.2)]))
    assert row.numbers["ttft_s_p50"] == 0.2


def test_step_series_are_pooled() -> None:
    assert wide_row(document()).numbers["step_s_p50"] == pytest.approx(0.2 / 60, rel=0.1)


def test_quality_is_the_mean_over_clips_that_have_a_score() -> None:
    scores = [
        ClipScore(item=item, repetition=0, metric="wer", value=value, unit="share", reason=reason)
        for item, value, reason in (("a", 0.0, ""), ("b", 0.5, ""), ("c", None, "silent clip"))
    ]
    numbers = wide_row(document(quality=scores)).numbers
    assert (numbers["wer_mean"], numbers["wer_n"]) == (0.25, 2)


def test_quality_without_any_score_is_null_with_its_reason() -> None:
    row = wide_row(document())
    assert row.numbers["log_mel_db_mean"] is None
    assert row.reasons["log_mel_db_mean"] == "a free-running clip has no reference"
    assert row.numbers["log_mel_db_n"] == 0


def test_size_on_disk_is_the_sum_of_the_stages() -> None:
    made = document()
    assert wide_row(made).numbers["size_on_disk_bytes"] == sum(a.size_bytes for a in made.artifacts)
    assert "size_on_disk_bytes" not in wide_row(failed("torch-fp32")).numbers


def test_runs_of_all_statuses_share_one_table() -> None:
    frame = wide_frame(map(wide_row, [document(), failed("ort-fp32", "timeout"), document("upstream")]))
    assert list(frame["status"]) == ["ok", "timeout", "ok"]
    assert list(frame["gpt"].isna()) == [False, False, True]
    assert frame["latency_s_p50"].isna().tolist() == [False, True, False]
    assert frame["rss_peak_bytes"].isna().tolist() == [False, True, False]


def test_the_long_table_holds_every_number_once() -> None:
    made = document()
    frame = long_frame([made])
    taken = frame[(frame.level == "sample") & (frame.metric == "latency_s")]
    assert taken["value"].tolist() == [s.values["latency_s"] for s in made.samples]
    assert set(taken["unit"]) == {"s"}
    assert frame[frame.metric == "vram_peak_bytes"]["reason"].tolist() == ["the run used no GPU"]
    assert len(frame[(frame.level == "quality") & (frame.metric == "wer")]) == len(TEXTS)
    assert not frame.duplicated(["run_id", "level", "phase", "item", "repetition", "metric"]).any()


def test_steps_are_rows_only_when_asked_for() -> None:
    made = document()
    assert not (long_frame([made]).level == "step").any()
    steps = long_frame([made], steps=True)
    steps = steps[steps.level == "step"]
    assert len(steps) == sum(len(s.series["step_s"]) for s in made.samples)
    assert steps["step"].max() == 4


def test_measures_need_no_known_name() -> None:
    row = wide_row(document(measures=Measures(values={"energy_j": 3.5})))
    assert row.numbers["energy_j"] == 3.5
