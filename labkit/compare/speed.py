"""Verdicts about cost: times from fresh processes by rank, peak memory by a plain margin.

It knows one number a process. Repetitions within a process are not independent of each other (they share its
memory layout, its clock and its neighbours), so each process gives one number and processes are what is counted.
What no statistics of one sitting can see: a base recorded on another day may have met another machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from labkit.compare.bounds import items_needed
from labkit.compare.margins import Margin
from labkit.compare.ranks import shift
from labkit.compare.statistics import Array
from labkit.compare.verdicts import CONFIDENCE, MOST_ITEMS, POWER, Outcome, Verdict
from labkit.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

Numbers = Sequence[float | None] | Mapping[str, float | None]
"""One number a process, by run id or in a row; None and NaN are missing."""

BASE_PER_HEAD = 2  # base processes for each head process: a base is recorded once and used often
RANK_COST = math.pi / 3  # samples that ranks take for each one that Student's t takes, for normal noise


def process_medians(frame: pd.DataFrame, metric: str) -> dict[str, float]:
    """One number for each run in rows of the store's long frame: medians over repetitions, summed over items.

    Warm-ups never enter. A run that lacks an item which another has would be shorter work: it is left out.
    """
    rows = frame[(frame["metric"] == metric) & frame["item"].notna()]
    if "phase" in rows:
        rows = rows[rows["phase"] != "warmup"]
    table = rows.groupby(["run_id", "item"])["value"].median().unstack()
    return {str(run): float(total) for run, total in table.dropna().sum(axis=1).items()}


def speed_verdict(
    base: Numbers,
    head: Numbers,
    rule: Margin,
    confidence: float = CONFIDENCE,
    *,
    quiet_machine: bool = False,
) -> Verdict:
    """Judge a time or a rate from process medians, above 0: `change` is head / base - 1.

    fail: the change is for the worse, larger than the margin, *and* significant (one-sided Mann-Whitney against "no
    change"); pass: the worst it can be lies within the margin. At least `rule.minimum` head processes and twice as
    many base processes. A `quiet_only` margin gates on a quiet machine only. Raises `UserError` for another kind of
    margin.
    """
    _check(rule, "speed", confidence)
    gates = quiet_machine or not rule.quiet_only
    before, after, reasons = _sides(base, head, rule)
    if not gates:
        reasons.append("informs only: the machine is not declared quiet")
    if not before.size or not after.size:
        return Verdict(rule, "not comparable", confidence, gates=gates, reasons=tuple(reasons))
    least = rule.minimum, BASE_PER_HEAD * rule.minimum
    if after.size < least[0] or before.size < least[1]:
        reasons.append(
            f"{after.size} head and {before.size} base processes; {least[0]} and {least[1]} are the minimum "
            "for a verdict"
        )
        return Verdict(
            rule,
            "inconclusive",
            confidence,
            n=after.size,
            n_needed=least[0],
            gates=gates,
            reasons=tuple(reasons),
        )
    moved = shift(np.log(before), np.log(after), confidence)
    slower = rule.direction == "lower"  # in which a larger number is the worse one
    worst = moved.high if slower else -moved.low
    loss = moved.value if slower else -moved.value
    p_worse, p_better = (moved.p_above, moved.p_below) if slower else (moved.p_below, moved.p_above)
    margin, small = math.log1p(rule.fail), math.log1p(rule.warn)
    outcome: Outcome = "inconclusive"
    if loss > margin and p_worse <= 1 - confidence:
        outcome = "fail"
    elif worst < margin:
        outcome = "pass"
    return Verdict(
        rule, outcome, confidence, change=math.expm1(moved.value), low=_finite(moved.low), high=_finite(moved.high),
        base=float(np.median(before)), head=float(np.median(after)), p=p_worse, n=after.size,
        n_needed=_processes_needed(before, after, abs(margin - loss), rule.minimum, confidence),
        warned=loss > small and p_worse <= 1 - confidence, improved=-loss > small and p_better <= 1 - confidence,
        gates=gates, reasons=tuple(reasons),
    )  # fmt: skip


def memory_verdict(base: Numbers, head: Numbers, rule: Margin, confidence: float = CONFIDENCE) -> Verdict:
    """Judge peak memory or a size, above 0: medians over processes against the plain margin, without statistics.

    Peaks of equal work repeat to a few percent, and a single large one is already what it costs. `confidence` is
    only carried along. Raises `UserError` for another kind of margin.
    """
    _check(rule, "memory", confidence)
    before, after, reasons = _sides(base, head, rule)
    if not before.size or not after.size:
        return Verdict(rule, "not comparable", confidence, reasons=tuple(reasons))
    if min(before.size, after.size) < rule.minimum:
        reasons.append(
            f"{after.size} head and {before.size} base processes; {rule.minimum} are the minimum for a verdict"
        )
        return Verdict(
            rule, "inconclusive", confidence, n=after.size, n_needed=rule.minimum, reasons=tuple(reasons)
        )
    old, new = median(before.tolist()), median(after.tolist())
    change = new / old - 1
    loss = change if rule.direction == "lower" else old / new - 1
    return Verdict(
        rule, "fail" if loss > rule.fail else "pass", confidence, change=change, base=old, head=new, n=after.size,
        n_needed=rule.minimum, warned=loss > rule.warn, improved=loss < -rule.warn, reasons=tuple(reasons),
    )  # fmt: skip


def _check(rule: Margin, kind: str, confidence: float) -> None:
    if rule.kind != kind:
        raise UserError(f"margin {rule.name!r} is about {rule.kind}, not about {kind}.")
    if not 0.5 < confidence < 1:
        raise UserError(f"confidence {confidence} must lie between 0.5 and 1, e.g. {CONFIDENCE}.")


def _sides(base: Numbers, head: Numbers, rule: Margin) -> tuple[Array, Array, list[str]]:
    """Both sides as arrays of numbers above 0, and what is missing from them."""
    sides, reasons = [], []
    for name, numbers in (("base", base), ("head", head)):
        given = list(numbers.values()) if isinstance(numbers, Mapping) else list(numbers)
        kept = [float(each) for each in given if each is not None and math.isfinite(each) and each > 0]
        sides.append(np.array(kept, dtype=np.float64))
        if not kept:
            reasons.append(f"no process of the {name} has {rule.metric} above 0")
        elif len(kept) < len(given):
            reasons.append(f"{len(given) - len(kept)} processes of the {name} have no {rule.metric} above 0")
    return sides[0], sides[1], reasons


def _processes_needed(
    before: Array, after: Array, distance: float, least: int, confidence: float
) -> int | None:
    """Head processes, with twice as many base processes, that would show `distance` from the margin (log ratio)."""
    residuals = np.concatenate([np.log(side) - np.log(side).mean() for side in (before, after)])
    spread = math.sqrt(float((residuals**2).sum()) / (residuals.size - 2))
    of_both = spread * math.sqrt(RANK_COST * (1 + 1 / BASE_PER_HEAD))
    needed = float(items_needed(of_both, distance, confidence, POWER))
    return max(int(needed), least) if needed <= MOST_ITEMS else None


def _finite(bound: float) -> float | None:
    return math.expm1(bound) if math.isfinite(bound) else None
