"""Clips made worse by a known amount: is it that amount?"""

from __future__ import annotations

import numpy as np
import pytest

from labkit.faults import damage
from labkit.faults.damage import Audio

RATE = 24_000


@pytest.fixture
def tone() -> Audio:
    """Two seconds of 440 Hz with 10 kHz a tenth as loud."""
    t = np.arange(2 * RATE) / RATE
    return (0.5 * np.sin(2 * np.pi * 440 * t) + 0.05 * np.sin(2 * np.pi * 10_000 * t)).astype(np.float32)


def level_db(audio: Audio) -> float:
    return 10 * float(np.log10(np.mean(audio.astype(np.float64) ** 2)))


@pytest.mark.parametrize("below", [20, 60])
def test_noise_lies_that_far_below_and_is_seeded(tone: Audio, below: float) -> None:
    noisy = damage.with_noise(tone, below, 1)
    assert level_db(noisy - tone) - level_db(tone) == pytest.approx(-below, abs=0.3)
    assert np.array_equal(noisy, damage.with_noise(tone, below, 1))
    assert not np.array_equal(noisy, damage.with_noise(tone, below, 2))


def test_a_low_pass_takes_what_is_above_and_nothing_else(tone: Audio) -> None:
    passed = damage.low_passed(tone, 4000)
    power = np.abs(np.fft.rfft(passed)) ** 2 / np.abs(np.fft.rfft(tone)) ** 2
    assert power[2 * 440] == pytest.approx(1, abs=0.01) and power[2 * 10_000] < 1e-6


def test_mu_law_keeps_the_ratio_of_noise_whatever_the_level(tone: Audio) -> None:
    ratios = [level_db(damage.mu_law(a)) - level_db(damage.mu_law(a) - a) for a in (tone, tone * 0.1)]
    assert all(30 < each < 42 for each in ratios)


def test_clicks_holes_and_a_cut(tone: Audio) -> None:
    assert np.count_nonzero(damage.with_clicks(tone) - tone) == 4
    holes = damage.with_holes(tone)
    assert np.count_nonzero(holes[12_000:13_200]) == 0 and np.array_equal(
        holes[13_200:36_000], tone[13_200:36_000]
    )
    assert np.array_equal(damage.cut_short(tone, 0.3), tone[:-7200])
    with pytest.raises(ValueError, match="cannot be cut"):
        damage.cut_short(tone[:7200], 0.3)


def test_no_damage_touches_the_clip_it_is_given(tone: Audio) -> None:
    before = tone.copy()
    for change in (damage.with_clicks, damage.with_holes, damage.mu_law, lambda a: damage.cut_short(a, 0.3)):
        change(tone)[:] = 0
    assert np.array_equal(tone, before)
