"""One metric of two runs: an effect, an interval, a p-value and a verdict in one word.

It knows paired values and the rule of a verdict: an effect that is large enough to matter *and* sure enough to
be said. It does not know files, recipes or what to do about a verdict.

Items are the units of all statistics. Items measured in one process share that process: differences between
processes (memory layout, neighbours, clock) are not in the interval, so a wall-clock verdict from one process
each is about these two processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from labkit.compare.pairing import pair_items
from labkit.compare.statistics import Array, bootstrap_interval, sign_flip_p_value, t_interval, t_p_value
from labkit.errors import UserError

Verdict = Literal["better", "worse", "same", "changed", "inconclusive", "not comparable"]
Direction = Literal["higher", "lower", "neither"]
Kind = Literal["ratio", "difference"]
Test = Literal["t", "sign-flip"]

MIN_ITEMS = 3  # fewer carry no interval worth printing
RATIO_MARGIN = 0.05  # a change of speed or size below 5 % is not worth a word
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rule:
    """When a change is called a change.

    margin: the smallest change that matters, above 0 (0.05 is a factor of 1.05 for a ratio, else the metric's
    own unit); direction: which way is better; confidence: of the two-sided test and interval.
    """

    margin: float
    direction: Direction
    confidence: float = CONFIDENCE
    test: Test = "t"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.margin > 0:
            raise UserError(f"margin {self.margin} must be above 0: a verdict needs an effect that matters.")
        if not 0 < self.confidence < 1:
            raise UserError(f"confidence {self.confidence} must lie between 0 and 1, e.g. 0.95.")

    def p_value(self, deltas: Array) -> float:
        """Two-sided p of "no change" for deltas [N], N >= 2."""
        return t_p_value(deltas) if self.test == "t" else sign_flip_p_value(deltas, seed=self.seed)

    def verdict(self, deltas: Array, limit: float) -> Verdict:
        """The word for per-item changes [N], N >= 3, where `limit` is the margin on their scale.

        better, worse (changed, when no direction is better): the mean is at least the limit and significant;
        same: the whole Student interval of the mean lies within the limit; else inconclusive.
        """
        mean = float(deltas.mean())
        if abs(mean) >= limit and self.p_value(deltas) < 1 - self.confidence:
            if self.direction == "neither":
                return "changed"
            return "better" if (mean > 0) == (self.direction == "higher") else "worse"
        inner = t_interval(deltas, self.confidence)
        return "same" if -limit < inner.low and inner.high < limit else "inconclusive"


@dataclass(frozen=True)
class Comparison:
    """What a metric did from baseline to candidate.

    `value` is candidate / baseline (a ratio: geometric mean over items) or candidate - baseline (a difference:
    mean over items), None when there is none; `low` and `high` are its bootstrap interval, `p` is two-sided;
    `deltas` are the log ratios or differences by item; `reasons` say why there is no verdict or what was left out.
    """

    metric: str
    kind: Kind
    rule: Rule
    verdict: Verdict
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    deltas: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """How many items were paired."""
        return len(self.deltas)

    @property
    def decided(self) -> bool:
        """The data carry a word about the effect."""
        return self.verdict in ("better", "worse", "same", "changed")

    @property
    def improvement(self) -> float | None:
        """A ratio turned so that above 1 is better (a speed-up); None for differences and neutral metrics."""
        if self.value is None or self.kind != "ratio" or self.rule.direction == "neither":
            return None
        return self.value if self.rule.direction == "higher" else 1 / self.value

    def words(self) -> str:
        """`2.83x`, `+0.12`; an undecided one carries a tilde, a missing one is a dash."""
        if self.value is None:
            return "—"
        shown = f"{self.value:.2f}x" if self.kind == "ratio" else f"{self.value:+.3g}"
        return shown if self.decided else f"~{shown}"


def ratio(
    candidate: pd.DataFrame,
    baseline: pd.DataFrame,
    metric: str,
    *,
    margin: float = RATIO_MARGIN,
    direction: Direction | None = None,
    confidence: float = CONFIDENCE,
    test: Test = "t",
    seed: int = 0,
) -> Comparison:
    """How many times the baseline's metric the candidate's is, paired by item: for times, rates and sizes.

    Each side is the rows of one run of the long frame. Repetitions give their median; an item with a value at
    or below zero has no ratio and is left out with a reason.
    """
    rule = Rule(margin, direction or better_direction(metric), confidence, test, seed)
    pairs, reasons = pair_items(candidate, baseline, metric, reduce="median")
    positive = (pairs > 0).all(axis=1)
    if not positive.all():
        reasons.append(f"{int((~positive).sum())} items at or below zero have no ratio and were left out")
    pairs = pairs[positive]
    deltas = np.log(pairs["candidate"].to_numpy() / pairs["baseline"].to_numpy())
    return _conclude(metric, "ratio", rule, pairs.index, deltas, reasons)


def difference(
    candidate: pd.DataFrame,
    baseline: pd.DataFrame,
    metric: str,
    *,
    margin: float,
    direction: Direction | None = None,
    confidence: float = CONFIDENCE,
    test: Test = "t",
    seed: int = 0,
) -> Comparison:
    """By how much the metric changed, paired by item: for scores. Repetitions give their mean."""
    rule = Rule(margin, direction or better_direction(metric), confidence, test, seed)
    pairs, reasons = pair_items(candidate, baseline, metric, reduce="mean")
    deltas = pairs["candidate"].to_numpy() - pairs["baseline"].to_numpy()
    return _conclude(metric, "difference", rule, pairs.index, deltas, reasons)


def better_direction(metric: str) -> Direction:
    """Which way is better for a metric of the store or the quality panel; `neither` when nothing says so."""
    from labkit.quality.base import all_metrics
    from labkit.results.units import METRICS, base_name

    name = base_name(metric)
    if name in all_metrics():
        return all_metrics()[name].direction
    listed = METRICS[name].better if name in METRICS else "none"
    return "neither" if listed == "none" else listed


def _conclude(
    metric: str, kind: Kind, rule: Rule, items: pd.Index, changes: Array, reasons: list[str]
) -> Comparison:
    deltas = {str(item): float(change) for item, change in zip(items, changes, strict=True)}
    if not deltas:
        why = tuple(reasons) or (f"no item has {metric} in both runs",)
        return Comparison(metric, kind, rule, "not comparable", reasons=why)
    back, limit = (math.exp, math.log1p(rule.margin)) if kind == "ratio" else (float, rule.margin)
    value = back(float(changes.mean()))
    if len(deltas) < MIN_ITEMS:
        why = (*reasons, f"{len(deltas)} paired items; {MIN_ITEMS} are the minimum for a verdict")
        return Comparison(metric, kind, rule, "inconclusive", value, deltas=deltas, reasons=why)
    low, high = bootstrap_interval(changes, rule.confidence, seed=rule.seed)
    return Comparison(
        metric, kind, rule, rule.verdict(changes, limit), value, back(low), back(high), rule.p_value(changes),
        deltas, tuple(reasons),
    )  # fmt: skip
