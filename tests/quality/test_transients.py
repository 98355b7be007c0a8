"""Clicks: those a clip has beyond its reference are found; its own, its noise and its level are none."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality.audio import active_level
from labkit.quality.transients import extra_transients, transients
from labkit.quality.validity import check


def clicked(speech: np.ndarray, *positions: int, size: float = 0.3) -> np.ndarray:
    wave = speech.astype(np.float64)
    wave[list(positions)] += size
    return wave


def extra(wave: np.ndarray, reference: np.ndarray) -> int:
    return extra_transients(wave, reference, active_level(wave))


def test_added_clicks_are_counted_and_those_of_the_reference_are_not(speech: np.ndarray) -> None:
    one, two = clicked(speech, 500), clicked(speech, 500, speech.size - 900)
    assert extra(two, speech) == 2
    assert extra(two, one) == 1
    assert extra(one, two) == extra(speech, speech) == 0


@pytest.mark.parametrize("seed", range(3))
def test_inaudible_changes_add_none(speech: np.ndarray, seed: int) -> None:
    hiss = np.random.default_rng(seed).standard_normal(speech.size)
    for wave in (speech * 0.5, speech + 1e-3 * active_level(speech) * hiss, np.roll(speech, 20)):
        assert extra(wave, speech) == 0


def test_a_click_has_one_place_whatever_its_ringing() -> None:
    wave = 1e-3 * np.random.default_rng(0).standard_normal(24_000)
    wave[10_000:10_006] += [0.5, -0.4, 0.3, -0.2, 0.1, -0.05]
    (place,) = transients(wave, active_level(wave))
    assert abs(place - 10_000) <= 3
    assert transients(np.ones(2), 1.0).size == 0


def test_validity_tells_what_was_added_and_lost(speech: np.ndarray) -> None:
    spectrum = np.fft.rfft(speech)
    spectrum[len(spectrum) * 8 // 12 :] = 0
    dull = np.fft.irfft(spectrum, speech.size)
    assert "clicks" in check(clicked(speech, 500), reference_audio=speech).flags
    assert check(dull, reference_audio=speech).numbers["high_band_loss_db"] > 10
    same = check(speech, reference_audio=speech)
    assert (same.numbers["high_band_loss_db"], same.numbers["extra_transients"], same.flags) == (0, 0, ())
    assert check(speech).reasons["extra_transients"] == "no reference clip"
    assert "silent" in check(speech, reference_audio=np.zeros(24_000)).reasons["high_band_loss_db"]
