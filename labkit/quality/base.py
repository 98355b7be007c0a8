"""The contract every quality metric keeps, and the registry of those that exist.

It knows what a clip is, what a scorer must say about itself (what it needs, its version, its price) and how a
missing number is told from a bad one. It loads no scorer: the registry holds strings, and a scorer's packages
are imported when it is loaded. A scorer never turns an exception or an unfit clip into a number.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
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

    `needs` is what a clip must carry; `languages` those it understands (None: it hears no words); `rate` what it
    listens at in Hz (it is deaf above half of that); `max_s` the longest clip it judges; `accepts_damaged` says
    that it wants to see broken clips too (integrity checks); `cost_cpu_s` is the rough CPU time for one 5 s clip.
    `packages` are the import names it cannot do without; `weights` the sha256 of every file it loads weights from,
    verified in `load`.
    """

    name: str
    metrics: tuple[Metric, ...]
    needs: frozenset[Need]
    languages: tuple[str, ...] | None
    rate: int
    packages: tuple[str, ...]
    weights: Mapping[str, str]
    max_s: float
    accepts_damaged: bool
    cost_cpu_s: float

    def availability(self) -> Ready | Missing:
        """Answer cheaply, without importing heavy packages."""

    def load(self) -> None:
        """Load weights; called once before the first clip."""

    def score(self, clip: Clip) -> dict[str, Score]:
        """Score a fit clip: one entry for every metric of `metrics`."""


# family -> "module:class", validity, then cheapest first; add a line here to add a metric family
_REGISTRY: dict[str, str] = {
    "validity": "labkit.quality.validity:ValidityScorer",
    "log_mel": "labkit.quality.log_mel:LogMelScorer",
    "ge2e": "labkit.quality.speaker_similarity:Ge2eScorer",
    "f0": "labkit.quality.f0:F0Scorer",
    "visqol": "labkit.quality.visqol:VisqolScorer",
    "forced_nll": "labkit.quality.forced_nll:ForcedNllScorer",
    "wer": "labkit.quality.wer:WerScorer",
    "campp": "labkit.quality.speaker_similarity:CamppScorer",
    "plcmos": "labkit.quality.plcmos:PlcMosScorer",
    "distillmos": "labkit.quality.distillmos:DistillMosScorer",
    "dnsmos": "labkit.quality.dnsmos:DnsmosScorer",
}

# a panel is a set of families with a name: `default` is what every run is judged by, so it stays cheap
DEFAULT_PANEL = "default"
PANELS: dict[str, tuple[str, ...]] = {
    DEFAULT_PANEL: ("validity", "log_mel", "wer", "dnsmos"),
    "full": tuple(_REGISTRY),
}


def scorer_names(panel: str = "full") -> tuple[str, ...]:
    """The families of a panel, cheapest first; `UserError` names the panels."""
    if panel not in PANELS:
        raise UserError(f"quality panel {panel!r} is unknown; known panels: {', '.join(PANELS)}.")
    return tuple(name for name in _REGISTRY if name in PANELS[panel])


@cache
def scorer_class(name: str) -> type[Scorer]:
    """The class of a family; `UserError` names the known ones."""
    if name not in _REGISTRY:
        raise UserError(f"quality scorer {name!r} is unknown; known scorers: {', '.join(_REGISTRY)}.")
    module, attribute = _REGISTRY[name].split(":")
    found: type[Scorer] = getattr(importlib.import_module(module), attribute)
    return found


@cache
def all_metrics(panel: str = "full") -> dict[str, Metric]:
    """Every metric of a panel by name. Imports the families' modules (NumPy only), no weights."""
    return {metric.name: metric for name in scorer_names(panel) for metric in scorer_class(name).metrics}


def selected_metrics(wanted: Sequence[str] | None) -> dict[str, tuple[Metric, ...]]:
    """The families and their metrics that names of metrics, families or panels ask for, in registry order.

    None asks for the default panel. Raises `UserError` for a name that is none of the three.
    """
    asked = set([DEFAULT_PANEL] if wanted is None else wanted)
    unknown = asked - set(PANELS) - set(_REGISTRY) - set(all_metrics())
    if unknown:
        known = ", ".join(dict.fromkeys([*PANELS, *_REGISTRY, *all_metrics()]))
        raise UserError(
            f"quality metric {min(unknown)!r} is unknown; known panels, scorers and metrics: {known}."
        )
    whole = asked.union(*(PANELS[name] for name in asked & set(PANELS)))
    chosen = {
        name: tuple(m for m in scorer_class(name).metrics if name in whole or m.name in whole)
        for name in _REGISTRY
    }
    return {name: metrics for name, metrics in chosen.items() if metrics}
