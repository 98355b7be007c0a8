"""PASS, FAIL, INCONCLUSIVE or NOT COMPARABLE: what paired scores say about a margin, and how surely.

It knows scores by item and margins. It does not know recipes, runs or what to do about a verdict. Items (sentences)
are the units: the seeds of a sentence are averaged first, because they share it. A verdict is about the mean
paired change and holds with one-sided confidence:

    fail          surely worse than the margin: the best the change can be lies beyond it
    pass          surely not: the worst the change can be lies within it
    inconclusive  neither, or too few items; `n_needed` says how many would decide
    not comparable  there is nothing to judge, and `reasons` say why
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from labkit.compare import bounds
from labkit.compare.margins import Margin
from labkit.compare.scores import Pairs, Scores, pair
from labkit.compare.statistics import Array, Interval, bootstrap_interval
from labkit.errors import UserError

Outcome = Literal["pass", "fail", "inconclusive", "not comparable"]
Test = Literal["t", "sign-flip"]
CONFIDENCE = 0.99
POWER = 0.9  # with which `n_needed` items decide
MOST_ITEMS = 1_000_000  # above, no number of items decides: the change sits on the margin


@dataclass(frozen=True)
class Verdict:
    """What became of one metric from base to head.

    change: mean of head - base in the metric's unit; new defects for counts; head / base - 1 for speed and memory.
    low, high: its one-sided bounds, each alone at `confidence`; None where a plain number is compared.
    p: of the failing test ("the truth is no worse than the margin"; speed: "nothing changed"), Holm-adjusted in
    a family. n: paired items, or head processes. n_needed: how many would decide if the observed change and spread
    are the true ones; None if no number would. warned, improved: surely beyond the smaller margin, for the worse or
    the better. gates: it counts in the overall outcome. changes: by item.
    """

    margin: Margin
    outcome: Outcome
    confidence: float = CONFIDENCE
    change: float | None = None
    low: float | None = None
    high: float | None = None
    base: float | None = None
    head: float | None = None
    p: float | None = None
    n: int = 0
    n_needed: int | None = None
    warned: bool = False
    improved: bool = False
    gates: bool = True
    changes: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        """The name of the margin, which is the metric's own unless it says otherwise."""
        return self.margin.name

    @property
    def bound(self) -> float | None:
        """The bound that decides: the change at best if it failed, else the change at worst."""
        at_best = self.outcome == "fail"
        return self.high if (self.margin.direction == "higher") == at_best else self.low

    def interval(self) -> Interval | None:
        """Two-sided bootstrap interval of the mean change over items, for display; no verdict rests on it."""
        if len(self.changes) < 2:
            return None
        return bootstrap_interval(np.array(list(self.changes.values())), self.confidence)

    def worst_items(self, count: int = 5) -> list[tuple[str, float]]:
        """The items that lost most, worst first, with their changes."""
        sign = 1 if self.margin.direction == "higher" else -1
        return sorted(self.changes.items(), key=lambda pair: sign * pair[1])[:count]

    def record(self) -> dict[str, Any]:
        """Plain values for JSON, without the changes by item; what is not finite is null."""
        plain: dict[str, Any] = {
            "metric": self.metric, "kind": self.margin.kind, "direction": self.margin.direction,
            "outcome": self.outcome, "warn": self.margin.warn, "fail": self.margin.fail,
            "confidence": self.confidence, "change": self.change, "low": self.low, "high": self.high,
            "bound": self.bound, "base": self.base, "head": self.head, "p": self.p, "n": self.n,
            "n_needed": self.n_needed, "warned": self.warned, "improved": self.improved, "gates": self.gates,
            "optional": self.margin.optional, "reasons": list(self.reasons),
        }  # fmt: skip
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in plain.items()
        }


def verdict(
    base: Scores | None,
    head: Scores | None,
    rule: Margin,
    confidence: float = CONFIDENCE,
    *,
    test: Test = "t",
    seed: int = 0,
) -> Verdict:
    """Judge one metric from its scores by item; None for a side without scores (`rule.ideal` may stand in for base).

    `test` is Student's t or the sign-flip test over items; `seed` draws sign patterns above 14 items. Raises
    `UserError` for a speed or memory margin (`speed_verdict`, `memory_verdict`) and an impossible confidence.
    """
    margins = {rule.name: rule}
    return judge_family({rule.name: base}, {rule.name: head}, margins, confidence, test=test, seed=seed)[
        rule.name
    ]


def judge_family(
    base: Mapping[str, Scores | None],
    head: Mapping[str, Scores | None],
    margins: Mapping[str, Margin],
    confidence: float = CONFIDENCE,
    *,
    test: Test = "t",
    seed: int = 0,
) -> dict[str, Verdict]:
    """Judge several metrics of the same items: metric -> scores on both sides, one verdict for every margin.

    A false alarm anywhere in the family comes with at most 1 - confidence: failing p-values are adjusted by Holm.
    Passing needs no correction, because the family passes only if each metric does. Counts are plain and take no
    part in the correction. Raises as `verdict` does.
    """
    _check(margins.values(), confidence, test)
    pairs = {
        name: pair(base.get(rule.metric, base.get(name)), head.get(rule.metric, head.get(name)), rule)
        for name, rule in margins.items()
    }
    found = {name: _unjudged(pairs[name], rule, confidence) for name, rule in margins.items()}
    found |= {
        name: _count(pairs[name], rule, confidence)
        for name, rule in margins.items()
        if rule.kind == "count" and found[name] is None
    }
    family = {name: rule for name, rule in margins.items() if found[name] is None}
    if family:
        found |= _judge_paired(family, pairs, confidence, test, seed)
    return {name: each for name, each in found.items() if each is not None}


def _check(rules: Iterable[Margin], confidence: float, test: str) -> None:
    if not 0.5 < confidence < 1:
        raise UserError(f"confidence {confidence} must lie between 0.5 and 1, e.g. {CONFIDENCE}.")
    if test not in ("t", "sign-flip"):
        raise UserError(f"test {test!r} is unknown; use t or sign-flip.")
    for rule in rules:
        if rule.kind not in ("paired", "count"):
            raise UserError(
                f"margin {rule.name!r} is about {rule.kind}, not about scores by item; use {rule.kind}_verdict."
            )


def _unjudged(pairs: Pairs, rule: Margin, confidence: float) -> Verdict | None:
    """The verdict of scores that carry none: there are none, or too few."""
    count = len(pairs.items)
    if not count:
        why = (*pairs.reasons, f"no item has {rule.metric} on both sides")
        return Verdict(rule, "not comparable", confidence, reasons=why)
    if count < rule.minimum:
        why = (*pairs.reasons, f"{count} paired items; {rule.minimum} are the minimum for a verdict")
        return Verdict(rule, "inconclusive", confidence, n=count, n_needed=rule.minimum, reasons=why)
    return None


def _count(pairs: Pairs, rule: Margin, confidence: float) -> Verdict:
    """New defects, whatever was healed elsewhere: a sentence that broke is not mended by another."""
    new = float(np.maximum(-pairs.gains, 0).sum())
    return Verdict(
        rule, "fail" if new > rule.fail else "pass", confidence, change=new,
        base=float(pairs.base.mean()), head=float(pairs.head.mean()), n=len(pairs.items), n_needed=rule.minimum,
        warned=new > rule.warn, improved=new == 0 and float(pairs.gains.sum()) > rule.warn,
        changes=_changes(pairs), reasons=pairs.reasons,
    )  # fmt: skip


def _changes(pairs: Pairs) -> dict[str, float]:
    return dict(zip(pairs.items, (pairs.head - pairs.base).tolist(), strict=True))


def _judge_paired(
    family: Mapping[str, Margin], pairs: Mapping[str, Pairs], confidence: float, test: Test, seed: int
) -> dict[str, Verdict]:
    alpha = 1 - confidence
    sample, low, high, p = _tests([pairs[name].gains for name in family], family, confidence, test, seed)
    failing = bounds.holm(p["fail"])
    # Holm's first step; what it costs is in the number of items that would decide
    room = sample.mean + np.array([rule.fail for rule in family.values()])
    sure = np.where(room < 0, 1 - alpha / len(family), confidence)
    needed = bounds.items_needed(sample.spread, np.abs(room), sure, POWER)
    found = {}
    for row, (name, rule) in enumerate(family.items()):
        outcome: Outcome = "inconclusive"
        if failing[row] <= alpha:
            outcome = "fail"
        elif p["pass"][row] <= alpha:
            outcome = "pass"
        found[name] = replace(
            _in_unit(pairs[name], rule, sample.mean[row], low[row], high[row]), outcome=outcome,
            confidence=confidence, p=float(failing[row]),
            n_needed=max(int(needed[row]), rule.minimum) if needed[row] <= MOST_ITEMS else None,
            warned=bool(p["warn"][row] <= alpha), improved=bool(p["improved"][row] <= alpha),
        )  # fmt: skip
    return found


def _tests(
    gains: list[Array], family: Mapping[str, Margin], confidence: float, test: Test, seed: int
) -> tuple[bounds.Sample, Array, Array, dict[str, Array]]:
    """Summary, bounds of the mean gains, and for each question the p-values of its denial, one entry a metric."""
    table = np.full((len(gains), max(each.size for each in gains)), np.nan)
    for row, each in enumerate(gains):
        table[row, : each.size] = each
    sample = bounds.summarize(table)
    fail, warn = (np.array([getattr(rule, key) for rule in family.values()]) for key in ("fail", "warn"))
    limits = {
        "fail": (-fail, "below"),
        "pass": (-fail, "above"),
        "warn": (-warn, "below"),
        "improved": (warn, "above"),
    }
    if test == "t":
        low, high = bounds.student_bounds(sample, confidence)
        ask = {"below": bounds.student_p_below, "above": bounds.student_p_above}
        return sample, low, high, {key: ask[side](sample, limit) for key, (limit, side) in limits.items()}
    means = [bounds.subset_means(each, seed=seed) for each in gains]
    low, high = np.array([bounds.flip_bounds(each, confidence) for each in means]).T
    flip = {"below": bounds.flip_p_below, "above": bounds.flip_p_above}
    return sample, low, high, {
        key: np.array([flip[side](each, float(at)) for each, at in zip(means, limit, strict=True)])
        for key, (limit, side) in limits.items()
    }  # fmt: skip


def _in_unit(pairs: Pairs, rule: Margin, gain: float, low: float, high: float) -> Verdict:
    """Gains turned back into changes of the metric."""
    if rule.direction == "lower":
        gain, low, high = 0.0 - gain, -high, -low
    return Verdict(
        rule, "inconclusive", change=float(gain),
        low=float(low) if math.isfinite(low) else None, high=float(high) if math.isfinite(high) else None,
        base=float(pairs.base.mean()), head=float(pairs.head.mean()), n=len(pairs.items),
        changes=_changes(pairs), reasons=pairs.reasons,
    )  # fmt: skip
