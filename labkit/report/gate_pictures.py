"""Two clips as one picture: where the second is louder and where it is quieter; and the steps at which tokens differ.

It knows samples and numbers, and nothing of gates.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labkit.report.audio import HOP, N_FFT, SAMPLE_RATE

SPAN_DB = 24.0  # a difference of this and more has the full colour
QUIET_DB = -60.0  # below the loudest cell of both: what is this quiet in both is no difference
_KL_FULL = 0.25  # nats: the full height of the strip


def difference_uri(base: NDArray[np.float32], head: NDArray[np.float32], *, height: int = 96) -> str:
    """Head's spectrogram less base's as a WebP data URI, 0 to 8 kHz: red is louder, blue quieter, white equal."""
    from matplotlib import colormaps
    from PIL import Image

    length = max(len(base), len(head))
    before, after = (_level_db(np.pad(clip, (0, length - len(clip)))) for clip in (base, head))
    floor = max(before.max(), after.max()) + QUIET_DB
    apart = np.maximum(after, floor) - np.maximum(before, floor)
    share = np.clip(apart[::-1] / (2 * SPAN_DB) + 0.5, 0, 1)
    pixels = (colormaps["RdBu_r"](share)[..., :3] * 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((480, height)).save(buffer, format="WEBP", quality=85)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def steps_svg(kl: Sequence[float], *, height: int = 28) -> str:
    """Divergence of each decode step as a strip of bars; a quarter nat and more has the full height."""
    bars = "".join(
        f'<rect x="{step}" y="{height - bar:.1f}" width="1" height="{bar:.1f}"/>'
        for step, value in enumerate(kl)
        if (bar := height * min(1.0, max(value, 0.0) / _KL_FULL)) > 0.2
    )
    return (
        f'<svg class="strip" viewBox="0 0 {max(1, len(kl))} {height}" preserveAspectRatio="none" '
        f'role="img" aria-label="divergence by step">{bars}</svg>'
    )


def _level_db(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Magnitudes in dB, [frequency up to 8 kHz, time]."""
    padded = np.pad(np.nan_to_num(np.asarray(samples, np.float64)), N_FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    magnitude = np.abs(np.fft.rfft(frames * np.hanning(N_FFT), axis=1)).T
    return 20 * np.log10(np.maximum(magnitude[: N_FFT * 8000 // SAMPLE_RATE], 1e-6))
