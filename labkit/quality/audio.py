"""Plain signal helpers shared by the scorers: frames, mel filters, levels, resampling, unfit clips.

It knows arrays and sample rates only; every formula names its source. No scorer-specific constants live here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from labkit.quality.base import SAMPLE_RATE

Array = NDArray[np.float64]
MIN_SECONDS = 0.1  # shorter than the shortest spoken digit: nothing a scorer could judge
SILENCE_PEAK = 1e-3  # -60 dBFS: below it there is nothing to hear
TARGET_DBFS = (
    -26.0
)  # active speech level of ITU-T P.56 practice (the level the MOS predictors were trained at)


def unfit(audio: object, *, sample_rate: int, max_s: float) -> str:
    """Why a clip cannot be judged, as a short phrase; "" when it can.

    The named outcomes: not mono, wrong sample rate, empty, too short, non-finite, silent, too long.
    """
    samples = np.asarray(audio)
    if samples.ndim != 1:
        return f"not mono: shape {samples.shape}, expected [N]"
    if sample_rate != SAMPLE_RATE:
        return f"sample rate is {sample_rate} Hz, expected {SAMPLE_RATE} Hz"
    if samples.size == 0:
        return "empty: no samples"
    if not np.isfinite(samples).all():
        return (
            f"non-finite: {int((~np.isfinite(samples)).sum())} of {samples.size} samples are NaN or infinite"
        )
    if np.abs(samples).max() < SILENCE_PEAK:
        return f"silent: no sample above {SILENCE_PEAK:g}"
    seconds = samples.size / SAMPLE_RATE
    if seconds < MIN_SECONDS:
        return f"too short: {samples.size} samples ({seconds:.3f} s), at least {MIN_SECONDS:g} s needed"
    if seconds > max_s:
        return f"too long: {seconds:.1f} s, at most {max_s:g} s are judged"
    return ""


def active_level(audio: NDArray[np.floating]) -> float:
    """RMS over the 20 ms frames whose energy is within 30 dB of the loudest frame (after ITU-T P.56).

    audio: [N] at 24 kHz with at least one frame; returns a linear level, 1.0 being full scale.
    """
    width = SAMPLE_RATE // 50
    samples = np.asarray(audio, np.float64)
    whole = samples[: samples.size // width * width] if samples.size >= width else samples
    energy = (whole.reshape(-1, width) ** 2).mean(1) if whole.size >= width else np.array([(whole**2).mean()])
    return float(np.sqrt(energy[energy >= energy.max() * 1e-3].mean()))


def to_16k(audio: NDArray[np.floating], *, level_dbfs: float | None = TARGET_DBFS) -> NDArray[np.float32]:
    """Resample a 24 kHz clip to 16 kHz (soxr HQ), bring it to the given active level, clip to [-1, 1]."""
    import soxr

    samples = np.asarray(audio, np.float64)
    if level_dbfs is not None:
        samples = samples * (10 ** (level_dbfs / 20) / active_level(samples))
    resampled = soxr.resample(samples, SAMPLE_RATE, 16_000, quality="HQ")
    return np.clip(resampled, -1.0, 1.0).astype(np.float32)


def spectrum(audio: NDArray[np.floating], size: int, hop: int) -> Array:
    """Magnitudes [F, size // 2 + 1] of centred, zero-padded, periodic-Hann frames."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    padded = np.pad(np.asarray(audio, np.float64), size // 2)
    padded = np.pad(padded, (0, max(0, size - padded.size)))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::hop]
    return np.asarray(np.abs(np.fft.rfft(frames * window, axis=1)))


@lru_cache(maxsize=4)
def mel_filters(sample_rate: int, size: int, bands: int) -> Array:
    """Triangular mel filters [bands, size // 2 + 1], Slaney scale (linear to 1 kHz, then log) and area norm.

    M. Slaney, Auditory Toolbox, 1998: 200/3 Hz a mel below 1 kHz, 27 mels per factor 6.4 above.
    """
    edges = _mel_to_hz(np.linspace(0.0, _hz_to_mel(sample_rate / 2), bands + 2))
    bins = np.arange(size // 2 + 1) * sample_rate / size
    rising = (bins[None] - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins[None]) / np.diff(edges)[1:, None]
    area = 2.0 / (edges[2:] - edges[:-2])
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)) * area[:, None])


def _hz_to_mel(hz: float) -> float:
    return hz * 3 / 200 if hz < 1000 else 15 + float(np.log(hz / 1000)) * 27 / float(np.log(6.4))


def _mel_to_hz(mel: Array) -> Array:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mel - 15)))
