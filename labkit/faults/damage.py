"""Clips made worse by a known amount. Pure NumPy and SciPy on audio [N] at 24 kHz; the length is kept, but by a cut.

It knows signals and nothing of voices. Noise is seeded, so a clip is damaged the same way every time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.quality.base import SAMPLE_RATE

Audio = NDArray[np.float32]
MU = 255  # ITU-T G.711
CLICK = 0.3  # of full scale, one sample
CLICK_EVERY, HOLE_EVERY, HOLE = SAMPLE_RATE // 2, SAMPLE_RATE, SAMPLE_RATE // 20  # samples
FILTER_ORDER = 10  # run forwards and backwards: 6 dB down at the edge, without delay


def with_noise(audio: Audio, below_db: float, seed: int) -> Audio:
    """White noise that many dB below the RMS of the clip."""
    level = np.sqrt(np.mean(audio.astype(np.float64) ** 2)) * 10 ** (-below_db / 20)
    return _single(audio + level * np.random.default_rng(seed).standard_normal(audio.size))


def low_passed(audio: Audio, edge_hz: float) -> Audio:
    """Butterworth, forwards and backwards."""
    from scipy.signal import butter, sosfiltfilt

    sections = butter(FILTER_ORDER, edge_hz, fs=SAMPLE_RATE, output="sos")
    return _single(sosfiltfilt(sections, audio.astype(np.float64)))


def mu_law(audio: Audio) -> Audio:
    """To 8 bits on a logarithmic scale and back."""
    wave = np.clip(audio.astype(np.float64), -1, 1)
    small = np.sign(wave) * np.log1p(MU * np.abs(wave)) / np.log1p(MU)
    coarse = np.round(small * 127) / 127
    return _single(np.sign(coarse) * np.expm1(np.abs(coarse) * np.log1p(MU)) / MU)


def with_clicks(audio: Audio) -> Audio:
    """A sample of `CLICK` more, every half second."""
    wave = audio.copy()
    wave[CLICK_EVERY // 2 :: CLICK_EVERY] += np.float32(CLICK)
    return wave


def with_holes(audio: Audio) -> Audio:
    """50 ms of zeros every second, the first after half a second."""
    wave = audio.copy()
    for start in range(HOLE_EVERY // 2, wave.size, HOLE_EVERY):
        wave[start : start + HOLE] = 0
    return wave


def cut_short(audio: Audio, seconds: float) -> Audio:
    """The end is missing. ValueError when nothing would be left."""
    kept = audio.size - round(seconds * SAMPLE_RATE)
    if kept < 1:
        raise ValueError(f"{seconds} s cannot be cut from {audio.size / SAMPLE_RATE:.2f} s")
    return audio[:kept].copy()


def _single(wave: NDArray[np.floating]) -> Audio:
    return np.asarray(wave, dtype=np.float32)
