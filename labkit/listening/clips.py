"""How clips are played: all at one loudness, and the muffled anchor made from a clip.

Loudness decides a comparison before quality does, so every clip is brought to -26 dB of full scale (RMS), the level
of ITU-T P.800 tests. The anchor is a 3.5 kHz low-pass, as in ITU-R BS.1534. It knows arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.errors import StoreError
from labkit.listening.trials import Clip
from labkit.results.files import SAMPLE_RATE
from labkit.results.store import Store

LEVEL_DB = -26.0
ANCHOR_HZ = 3_500.0
_PEAK = 0.99
_ORDER = 10

FloatArray = NDArray[np.float32]


def heard(store: Store, clip: Clip) -> FloatArray:
    """The samples [N] that a listener gets at 24 kHz; `StoreError` when the kept audio cannot be read."""
    from labkit.report.audio import read_clip

    path = store.audio_file(clip.run_id, clip.audio)
    try:
        samples = read_clip(path)
    except Exception as error:  # soundfile raises its own RuntimeErrors
        raise StoreError(
            f"the clip {path} cannot be read ({error}); put it back, or leave its run out."
        ) from error
    return level(muffle(samples) if clip.muffled else samples)


def level(samples: FloatArray) -> FloatArray:
    """At -26 dB RMS, or as near as the peaks allow; silence stays silence."""
    rms = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
    if not rms:
        return samples
    gain = min(10 ** (LEVEL_DB / 20) / rms, _PEAK / float(np.abs(samples).max()))
    return (samples * np.float32(gain)).astype(np.float32)


def muffle(samples: FloatArray) -> FloatArray:
    """Without what lies above 3.5 kHz, and not shifted in time."""
    from scipy.signal import butter, sosfiltfilt

    filtered = sosfiltfilt(butter(_ORDER, ANCHOR_HZ, fs=SAMPLE_RATE, output="sos"), samples, padlen=0)
    return np.asarray(filtered, np.float32)
