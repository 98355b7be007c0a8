"""ViSQOL: the top score for equal clips, lower for damage, a named outcome for clips too short to compare."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality import Clip, judge
from labkit.quality.base import Missing
from labkit.quality.visqol import VisqolScorer

pytestmark = pytest.mark.skipif(
    isinstance(VisqolScorer().availability(), Missing), reason="visqol-python is not installed"
)


def test_equal_clips_get_five_and_noise_takes_away(speech: np.ndarray) -> None:
    hiss = np.random.default_rng(0).standard_normal(speech.size)
    clips = [
        Clip("a", 0, audio.astype(np.float32), reference_audio=speech)
        for audio in (speech, speech + 0.002 * hiss, speech + 0.02 * hiss)
    ]
    same, near, far = (row["value"] for row in judge(clips, ["visqol"]))
    assert same == pytest.approx(5, abs=1e-3)
    assert same > near > far + 0.2


def test_clips_too_short_to_compare_are_a_named_outcome(speech: np.ndarray) -> None:
    short = speech[6000:18_000]
    (row,) = judge([Clip("a", 0, short, reference_audio=short)], ["visqol"])
    assert row["value"] is None
    assert row["reason"] == "too short: 0.50 s, ViSQOL needs 1 s"
    assert "exponential" in row["scorer_version"]
