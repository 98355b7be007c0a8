"""Signal helpers: levels, filters and the named outcomes of unfit clips."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality.audio import active_level, mel_filters, spectrum, to_16k, unfit

RATE = 24_000


@pytest.mark.parametrize(
    ("audio", "reason"),
    [
        (np.zeros((RATE, 2)), "not mono"),
        (np.zeros(0), "empty"),
        (np.array([0.5]), "too short"),
        (np.full(RATE, 1e-5), "silent"),
        (np.r_[np.ones(RATE), np.inf], "non-finite: 1 of 24001"),
        (np.ones(31 * RATE), "too long: 31.0 s"),
    ],
)
def test_unfit_clips_are_named(audio: np.ndarray, reason: str) -> None:
    assert unfit(audio, sample_rate=RATE, max_s=30).startswith(reason)


def test_a_fit_clip_and_a_wrong_rate(speech: np.ndarray) -> None:
    assert unfit(speech, sample_rate=RATE, max_s=30) == ""
    assert "8000 Hz" in unfit(speech, sample_rate=8_000, max_s=30)


def test_active_level_ignores_silence(speech: np.ndarray) -> None:
    padded = np.concatenate([speech, np.zeros(10 * RATE, np.float32)])
    assert active_level(padded) == pytest.approx(active_level(speech))


def test_to_16k_removes_gain(speech: np.ndarray) -> None:
    loud, quiet = to_16k(speech), to_16k(speech * 0.05)
    np.testing.assert_allclose(loud, quiet, atol=1e-5)
    assert len(loud) == pytest.approx(len(speech) * 2 / 3, abs=2)


def test_spectrum_finds_a_tone_and_filters_cover_the_band() -> None:
    tone = np.sin(2 * np.pi * 3000 * np.arange(RATE) / RATE)
    assert spectrum(tone, 1024, 256)[40].argmax() == 128  # 3000 / 24000 * 1024
    filters = mel_filters(RATE, 1024, 100)
    assert filters.shape == (100, 513)
    assert (filters >= 0).all()
    assert (filters.sum(0)[2:512] > 0).all()
