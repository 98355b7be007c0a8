"""Log-mel distance to the reference clip, in dB: what a recipe's acoustic path changed on the same tokens.

It knows two clips of equal length. No alignment is made: the same tokens give the same number of samples, and a
difference in length is an outcome of its own, not a reason to cut.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import mel_filters, spectrum
from labkit.quality.base import SAMPLE_RATE, Clip, Metric, Need, Ready, Score

FLOOR = 1e-4  # magnitude: without it digital silence against dither would rule the mean
DB_PER_NEPER = 20 / np.log(10)  # 8.686: natural log of a magnitude in dB


def log_mel_db(audio: NDArray[np.floating], reference: NDArray[np.floating]) -> float:
    """Mean absolute difference of the two log-mels in dB.

    audio, reference: [N] at 24 kHz, equal N; 1024-sample Hann frames every 256 samples, 100 Slaney mel bands of
    magnitude (the voice's own mel). Raises ValueError on unequal lengths.
    """
    if len(audio) != len(reference):
        raise ValueError(f"lengths differ: {len(audio)} and {len(reference)} samples")
    filters = mel_filters(SAMPLE_RATE, 1024, 100).T
    mine, theirs = (np.log(np.maximum(spectrum(x, 1024, 256) @ filters, FLOOR)) for x in (audio, reference))
    return float(np.abs(mine - theirs).mean() * DB_PER_NEPER)


class LogMelScorer:
    """`log_mel_db` behind the metric contract."""

    name = "log_mel"
    metrics = (
        Metric("log_mel_db", "dB", "lower", "mean log-mel distance to the reference on the same tokens"),
    )
    needs: frozenset[Need] = frozenset({"reference"})
    languages: tuple[str, ...] | None = None
    rate = SAMPLE_RATE
    packages: tuple[str, ...] = ()
    weights: ClassVar[dict[str, str]] = {}
    max_s = 120.0
    accepts_damaged = False
    cost_cpu_s = 0.02

    def availability(self) -> Ready:
        return Ready("labkit log_mel 1")

    def load(self) -> None:
        """Nothing to load."""

    def score(self, clip: Clip) -> dict[str, Score]:
        reference = np.asarray(clip.reference_audio)
        if len(clip.audio) != len(reference):
            lengths = f"{len(clip.audio)} and {len(reference)} samples"
            return {"log_mel_db": Score(None, f"not the same tokens: clip and reference have {lengths}")}
        return {"log_mel_db": Score(log_mel_db(clip.audio, reference))}
