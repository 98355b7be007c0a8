"""Clips for a page: encoded small enough to embed, and drawn as spectrogram pictures.

It knows samples and bytes, and nothing of runs. Encoded sound is for ears only; judges use the stored FLAC.
"""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000
N_FFT, HOP = 1024, 256  # the analysis of ChatTTS's mel: 43 ms windows, 10.7 ms hops
FLOOR_DB = -75.0  # quieter than this under the loudest cell is drawn as background


def read_clip(path: Path) -> NDArray[np.float32]:
    """Mono samples [N] of a stored clip; raises what soundfile raises when the file is not audio."""
    import soundfile

    samples, _ = soundfile.read(path, dtype="float32")
    return np.asarray(samples)


def opus_uri(samples: NDArray[np.float32]) -> str:
    """Ogg/Opus as a data URI: about 4 kB per second of speech, a tenth of FLAC."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, np.clip(samples, -1, 1), SAMPLE_RATE, format="OGG", subtype="OPUS")
    return _uri("audio/ogg", buffer.getvalue())


def spectrogram_db(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Magnitudes in dB under the loudest cell, [frequency 513, time], clipped at `FLOOR_DB`."""
    padded = np.pad(np.asarray(samples, np.float64), N_FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    magnitude = np.abs(np.fft.rfft(frames * np.hanning(N_FFT), axis=1)).T
    loudest = magnitude.max()
    if not loudest:
        return np.full(magnitude.shape, FLOOR_DB)
    floor = 10 ** (FLOOR_DB / 20)
    return 20 * np.log10(np.maximum(magnitude / loudest, floor))


def spectrogram_uri(samples: NDArray[np.float32], *, seconds: float, height: int = 96) -> str:
    """A spectrogram as a small WebP data URI; `seconds` is the width of the time axis, so clips line up."""
    from matplotlib import colormaps
    from PIL import Image

    columns = max(1, round(seconds * SAMPLE_RATE / HOP))
    level = spectrogram_db(samples)[: N_FFT // 3, :columns]  # up to 8 kHz, where speech lives
    level = np.pad(level, ((0, 0), (0, columns - level.shape[1])), constant_values=FLOOR_DB)
    pixels = (colormaps["magma"](1 - level[::-1] / FLOOR_DB)[..., :3] * 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((480, height)).save(buffer, format="WEBP", quality=80)
    return _uri("image/webp", buffer.getvalue())


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
