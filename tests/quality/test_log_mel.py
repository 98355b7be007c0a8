"""Log-mel distance: zero on itself, monotone in damage, never a number for unequal lengths."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality import Clip, judge
from labkit.quality.log_mel import log_mel_db


def test_the_same_clip_is_at_zero(speech: np.ndarray) -> None:
    assert log_mel_db(speech, speech) == 0.0


def test_a_known_gain_reads_in_db_where_nothing_is_floored(noise: np.ndarray) -> None:
    assert log_mel_db(noise, noise * 10 ** (-6 / 20)) == pytest.approx(6.0, abs=0.05)


def test_more_noise_is_further_away(speech: np.ndarray) -> None:
    dither = np.random.default_rng(1).standard_normal(speech.size)
    distances = [log_mel_db(speech + level * dither, speech) for level in (1e-4, 1e-3, 1e-2)]
    assert distances == sorted(distances)
    assert distances[0] < 1.5 < distances[-1]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (lambda x: x[:-256], "not the same tokens"),
        (lambda x: x * 0, "the reference clip is silent"),
        (lambda x: None, "the clip has no reference"),
    ],
)
def test_unfit_references_are_named(speech: np.ndarray, reference: object, reason: str) -> None:
    clip = Clip("a", 0, speech, reference_audio=reference(speech))  # type: ignore[operator]
    (row,) = judge([clip], ["log_mel_db"])
    assert row["value"] is None
    assert reason in row["reason"]
