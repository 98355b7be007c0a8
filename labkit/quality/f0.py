"""Pitch: how high the voice speaks, how much of it is voiced, and whether it moves as in the reference clip.

It knows the SwiftF0 network inside the `swift-f0` package (16 ms frames at 16 kHz) and the range of speech. Median and
voicing are facts of a clip, neither good nor bad; the correlation is a fidelity, for clips of the same tokens.

Nieradzik, SwiftF0: Fast and Accurate Monophonic Pitch Detection, 2025.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import to_16k, unfit
from labkit.quality.base import SAMPLE_RATE, Clip, FloatArray, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_version
from labkit.quality.networks import installed_file, missing_package, onnxruntime_version, short_hashes

RATE = 16_000
RANGE_HZ = (60.0, 550.0)  # of speaking voices, with room
VOICED = 0.5  # confidence, as the network is calibrated
MIN_SHARED = 12  # frames voiced in both clips (0.2 s): a correlation of fewer says nothing
REMEDY = "Install the extra with `pip install 'labkit[quality]'`."

METRICS = (
    Metric("f0_median_hz", "Hz", "neither", "median pitch of the voiced frames"),
    Metric("voiced_share", "share", "neither", "16 ms frames that are voiced"),
    Metric(
        "f0_correlation",
        "correlation",
        "higher",
        "correlation of log pitch with the reference on the same tokens",
    ),
)


class PitchTracker:
    """The network, one thread. Raises `ScorerFileError` when the file is not the published one."""

    def __init__(self) -> None:
        (name,) = F0Scorer.weights
        installed_file("swift_f0", name, F0Scorer.weights)
        from swift_f0 import SwiftF0

        self._detector: Any = SwiftF0(threads=1, spin=False)

    def __call__(self, audio: FloatArray) -> NDArray[np.float64]:
        """Pitch in Hz of each 16 ms frame [F] of audio [N] at 24 kHz; NaN where it is not voiced."""
        found = self._detector.detect(to_16k(audio), RATE, *RANGE_HZ)
        return np.where(found.confidence >= VOICED, found.pitch_hz, np.nan)


def pitch_correlation(pitch: NDArray[np.float64], reference: NDArray[np.float64]) -> Score:
    """Pearson correlation of log pitch over the frames voiced in both tracks [F], or why there is none."""
    if pitch.size != reference.size:
        return Score(None, f"not the same tokens: {pitch.size} and {reference.size} frames")
    both = np.isfinite(pitch) & np.isfinite(reference)
    if both.sum() < MIN_SHARED:
        return Score(
            None, f"{int(both.sum())} frames are voiced in both clips, at least {MIN_SHARED} are needed"
        )
    mine, theirs = np.log(pitch[both]), np.log(reference[both])
    if mine.std() < 1e-9 or theirs.std() < 1e-9:
        return Score(None, "the pitch does not move")
    return Score(float(np.corrcoef(mine, theirs)[0, 1]))


class F0Scorer:
    """Pitch behind the metric contract."""

    name = "f0"
    metrics = METRICS
    needs: frozenset[Need] = frozenset()  # the correlation alone wants a reference, and says so
    languages: tuple[str, ...] | None = None
    rate = RATE
    packages = ("swift_f0", "onnxruntime")
    weights: ClassVar[dict[str, str]] = {
        "model.onnx": "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22"
    }
    max_s = 120.0
    accepts_damaged = False
    cost_cpu_s = 0.1

    def availability(self) -> Ready | Missing:
        versions = f"swift-f0 {package_version('swift-f0')} ({short_hashes(self.weights)})"
        return missing_package("Pitch", self.packages, REMEDY) or Ready(
            f"{versions}, onnxruntime {onnxruntime_version()}, {RANGE_HZ[0]:g}-{RANGE_HZ[1]:g} Hz"
        )

    def load(self) -> None:
        self._track = PitchTracker()

    def score(self, clip: Clip) -> dict[str, Score]:
        pitch = self._track(clip.audio)
        voiced = pitch[np.isfinite(pitch)]
        median = Score(float(np.median(voiced))) if voiced.size else Score(None, "no frame is voiced")
        return {
            "f0_median_hz": median,
            "voiced_share": Score(voiced.size / pitch.size),
            "f0_correlation": self._correlation(pitch, clip),
        }

    def _correlation(self, pitch: NDArray[np.float64], clip: Clip) -> Score:
        if clip.reference_audio is None:
            return Score(None, "not applicable: the clip has no reference")
        reason = unfit(clip.reference_audio, sample_rate=SAMPLE_RATE, max_s=self.max_s)
        if reason:
            return Score(None, f"the reference clip is {reason}")
        return pitch_correlation(pitch, self._track(clip.reference_audio))
