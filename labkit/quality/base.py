"""The contract every quality metric keeps, and the registry of those that exist.

It knows what a clip is, what a scorer must say about itself (what it needs, its version, its price) and how a
missing number is told from a bad one. It loads no scorer: the registry holds strings, and a scorer's packages
are imported when it is loaded. A scorer never turns an exception or an unfit clip into a number.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from labkit.errors import UserError

SAMPLE_RATE = 24_000  # Hz: what the voice's vocoder gives; clips of another rate are refused, not resampled

FloatArray = NDArray[np.floating]
Direction = Literal["higher", "lower", "neither"]
Need = Literal["text", "reference", "tokens"]


@dataclass(frozen=True)
class Clip:
    """One rendition to be judged, with what is known about it.

    audio: [N] float samples at `sample_rate` Hz; text: what should be heard (control tokens are ignored);
    reference_audio: [N] what the reference recipe made of the *same tokens* (leave it out for free-running
    clips: sample-wise distances between two renditions mean nothing); codes: [T, 4] the drawn codes;
    ended: True when the model stopped by itself, False when it hit the maximum, None when not known;
    expected_s: seconds a good rendition of the text takes, for the duration ratio.
    """

    item: str
    repetition: int
    audio: FloatArray
    text: str = ""
    language: str = "en"
    sample_rate: int = SAMPLE_RATE
    reference_audio: FloatArray | None = None
    codes: NDArray[np.integer] | None = None
    ended: bool | None = None
    expected_s: float | None = None


@dataclass(frozen=True)
class Metric:
    """What one number means. `unit` is short; `direction` is the better one."""

    name: str
    unit: str
    direction: Direction
    description: str


@dataclass(frozen=True)
class Score:
    """A number, or None with the reason. Beside a number, `reason` may hold a short remark (what was heard)."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True)
class Ready:
    """The scorer can run here. `version` pins its package, weights and protocol."""

    version: str


@dataclass(frozen=True)
class Missing:
    """The scorer cannot run here: why, and what would change that."""

    reason: str
    remedy: str


class Scorer(Protocol):
    """One metric family: loaded once, then asked about one clip at a time.

    `needs` is what a clip must carry; `max_s` the longest clip it judges; `accepts_damaged` says that it wants to
    see broken clips too (integrity checks); `cost_cpu_s` is the rough CPU time for one 5 s clip.
    """

    name: str
    metrics: tuple[Metric, ...]
    needs: frozenset[Need]
    languages: tuple[str, ...] | None
    max_s: float
    accepts_damaged: bool
    cost_cpu_s: float

    def availability(self) -> Ready | Missing:
        """Answer cheaply, without importing heavy packages."""

    def load(self) -> None:
        """Load weights; called once before the first clip."""

    def score(self, clip: Clip) -> dict[str, Score]:
        """Score a fit clip: one entry for every metric of `metrics`."""


# family -> "module:class", cheapest first; add a line here to add a metric family
_REGISTRY: dict[str, str] = {
    "validity": "labkit.quality.validity:ValidityScorer",
    "log_mel": "labkit.quality.log_mel:LogMelScorer",
    "dnsmos": "labkit.quality.dnsmos:DnsmosScorer",
    "wer": "labkit.quality.wer:WerScorer",
}


def scorer_names() -> tuple[str, ...]:
    """All registered families, cheapest first."""
    return tuple(_REGISTRY)


@cache
def scorer_class(name: str) -> type[Scorer]:
    """The class of a family; `UserError` names the known ones."""
    if name not in _REGISTRY:
        raise UserError(f"quality scorer {name!r} is unknown; known scorers: {', '.join(_REGISTRY)}.")
    module, attribute = _REGISTRY[name].split(":")
    found: type[Scorer] = getattr(importlib.import_module(module), attribute)
    return found


@cache
def all_metrics() -> dict[str, Metric]:
    """Every metric by name. Imports the families' modules (NumPy only), no weights."""
    return {metric.name: metric for name in _REGISTRY for metric in scorer_class(name).metrics}


def scorers_for(wanted: tuple[str, ...] | list[str] | None) -> list[Scorer]:
    """New scorers for the given metric or family names, in registry order; None takes all.

    Raises `UserError` for a name that is neither a metric nor a family.
    """
    if wanted is not None:
        unknown = [name for name in wanted if name not in _REGISTRY and name not in all_metrics()]
        if unknown:
            known = ", ".join([*_REGISTRY, *all_metrics()])
            raise UserError(f"quality metric {unknown[0]!r} is unknown; known scorers and metrics: {known}.")
    return [
        scorer_class(name)()
        for name in _REGISTRY
        if wanted is None
        or name in wanted
        or any(metric.name in wanted for metric in scorer_class(name).metrics)
    ]
