"""Validity: each defect is found by its own flag, good speech raises none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labkit.quality.validity import METRICS, check

RATE = 24_000


def damaged(speech: np.ndarray, how: str) -> np.ndarray:
    loud = int(np.abs(speech).argmax())
    wave = speech.copy()
    if how == "non_finite":
        wave[loud] = np.nan
    elif how == "silent":
        wave = wave * 1e-4
    elif how == "clipped":
        wave = np.clip(wave * 20, -1, 1)
    elif how == "dc_offset":
        wave = wave + 0.2
    elif how == "dropout":
        wave[loud - 300 : loud + 300] = 0
    elif how == "tail_cut":
        wave = wave[: loud + 10]
    elif how == "too_short":
        wave = wave[loud - 600 : loud + 600]
    return wave


def test_good_speech_raises_no_flag(speech: np.ndarray) -> None:
    found = check(speech, ended=True, expected_s=3.0)
    assert found.flags == ()
    assert not found.fatal
    assert found.numbers["duration_s"] == pytest.approx(2.95)
    assert found.numbers["duration_ratio"] == pytest.approx(2.95 / 3)


@pytest.mark.parametrize(
    "how", ["non_finite", "silent", "clipped", "dc_offset", "dropout", "tail_cut", "too_short"]
)
def test_each_damage_raises_its_flag(speech: np.ndarray, how: str) -> None:
    assert how in check(damaged(speech, how)).flags


@pytest.mark.parametrize(
    ("audio", "flag"),
    [
        (np.zeros(0, np.float32), "empty"),
        (np.ones(1, np.float32), "one_sample"),
        (np.zeros(RATE, np.float32), "silent"),
        (np.full(RATE, np.nan, np.float32), "non_finite"),
        (np.zeros((2, RATE), np.float32), "not_mono"),
    ],
)
def test_no_speech_is_fatal_and_gives_reasons_for_missing_numbers(audio: np.ndarray, flag: str) -> None:
    found = check(audio)
    assert found.flags == (flag,)
    assert found.fatal
    assert flag in found.reasons["level_dbfs"]


def test_another_sample_rate_is_fatal(speech: np.ndarray) -> None:
    found = check(speech[::3], sample_rate=8_000)
    assert found.flags == ("sample_rate",)
    assert found.fatal


@pytest.mark.parametrize(("ended", "flagged"), [(True, False), (None, False), (False, True)])
def test_hit_max_needs_a_known_missing_end(speech: np.ndarray, ended: bool | None, flagged: bool) -> None:
    assert ("hit_max" in check(speech, ended=ended).flags) is flagged


def test_ending_at_once_is_fatal() -> None:
    found = check(np.zeros(0, np.float32), codes=np.zeros((0, 4), np.int64), ended=True)
    assert found.flags == ("empty", "ended_at_once")
    assert found.fatal


@pytest.mark.parametrize(("expected_s", "flag"), [(10.0, "too_brief"), (1.0, "too_long")])
def test_duration_far_from_expected_is_flagged_but_not_fatal(
    speech: np.ndarray, expected_s: float, flag: str
) -> None:
    found = check(speech, expected_s=expected_s)
    assert found.flags == (flag,)
    assert not found.fatal


def test_a_pause_of_true_zeros_is_no_dropout(speech: np.ndarray) -> None:
    fade = np.linspace(1, 0, 2400, dtype=np.float32) ** 2
    faded = np.concatenate([speech[:-2400], speech[-2400:] * fade])
    assert "dropout" not in check(np.concatenate([faded, np.zeros(6000, np.float32), faded])).flags


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=5000),
        elements=st.floats(-2, 2, width=32) | st.just(float("nan")) | st.just(float("inf")),
        fill=st.floats(-1, 1, width=32),
    )
)
def test_any_array_gets_finite_numbers_or_reasons(audio: np.ndarray) -> None:
    found = check(audio)
    for metric in METRICS[1:]:
        assert (metric.name in found.numbers) != (metric.name in found.reasons)
    assert all(np.isfinite(value) for value in found.numbers.values())
