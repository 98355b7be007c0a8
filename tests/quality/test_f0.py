"""Pitch: a known pitch is found, the correlation is that of known tracks, what has none says why."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality import Clip, judge
from labkit.quality.base import Missing
from labkit.quality.f0 import F0Scorer, pitch_correlation

RATE = 24_000
needs_swift = pytest.mark.skipif(
    isinstance(F0Scorer().availability(), Missing), reason="swift-f0 is not installed"
)


def buzz(pitch: np.ndarray) -> np.ndarray:
    """Ten harmonics [N] of a pitch track in Hz [N], falling 6 dB an octave."""
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    return 0.1 * np.sum([np.sin(k * phase) / k for k in range(1, 11)], axis=0)


@needs_swift
def test_a_known_pitch_is_found() -> None:
    pitch = 180 + 60 * np.sin(2 * np.pi * np.arange(2 * RATE) / RATE)  # once up and down a second
    audio = buzz(pitch)
    clips = [Clip("same", 0, audio, reference_audio=audio), Clip("alone", 0, audio)]
    rows = judge(clips, ["f0"])
    median, voiced, correlation, *alone = (row["value"] for row in rows)
    assert median == pytest.approx(np.median(pitch), rel=0.03)
    assert voiced > 0.9
    assert correlation == pytest.approx(1, abs=1e-6)
    assert alone[:2] == [median, voiced] and alone[2] is None
    assert "no reference" in rows[-1]["reason"]


@needs_swift
def test_noise_has_no_pitch(noise: np.ndarray) -> None:
    median, voiced, correlation = judge([Clip("a", 0, noise, reference_audio=noise)], ["f0"])
    assert median["value"] is None and median["reason"] == "no frame is voiced"
    assert voiced["value"] == 0
    assert correlation["value"] is None and "0 frames" in correlation["reason"]


@needs_swift
def test_an_unfit_reference_costs_the_correlation_alone(speech: np.ndarray) -> None:
    median, _, correlation = judge([Clip("a", 0, speech, reference_audio=np.zeros(RATE))], ["f0"])
    assert median["value"] is not None
    assert correlation["value"] is None and "reference clip is silent" in correlation["reason"]


def test_the_correlation_of_known_tracks() -> None:
    track = np.exp(5 + 0.2 * np.sin(np.arange(60) / 5))
    octave_up = 2 * track
    octave_up[::10] = np.nan
    assert pitch_correlation(octave_up, track).value == pytest.approx(1)
    assert pitch_correlation(1 / track, track).value == pytest.approx(-1)
    assert "not the same tokens" in pitch_correlation(track[:-1], track).reason
    assert pitch_correlation(np.full(60, 120.0), track).reason == "the pitch does not move"
