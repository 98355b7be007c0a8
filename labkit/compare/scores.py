"""Scores by item, and how two sides of them are paired: seeds within an item first, then item by item.

It knows which scores belong together and what has to be left out. It knows no statistics and judges nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.compare.margins import Margin
from labkit.compare.statistics import Array

if TYPE_CHECKING:
    import pandas as pd

Scores = Mapping[str, float | Sequence[float | None] | None]
"""Item -> its score, or its scores by seed; None and NaN are missing. A Series indexed by item will do, too."""


@dataclass(frozen=True)
class Pairs:
    """Scores that both sides have: items, base [N], head [N]; gains [N] are above zero for the better."""

    items: list[str]
    base: Array
    head: Array
    gains: Array
    reasons: tuple[str, ...]


def item_scores(frame: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Metric -> item -> scores by seed, from rows of the store's long frame; warm-ups never enter.

    The rows are those of one recipe: one run, or one run for each seed. Missing values stay as NaN in their place,
    so that two sides of equal seeds match one by one.
    """
    rows = frame[frame["phase"] != "warmup"] if "phase" in frame else frame
    order = [column for column in ("seed", "repetition") if column in rows]
    rows = rows.dropna(subset=["item"])
    rows = rows.sort_values(order, kind="stable") if order else rows
    found: dict[str, dict[str, list[float]]] = {}
    for (metric, item), values in rows.groupby(["metric", "item"], sort=False)["value"]:
        found.setdefault(str(metric), {})[str(item)] = values.astype("float64").tolist()
    return found


def pair(base: Scores | None, head: Scores | None, rule: Margin) -> Pairs:
    """Match both sides by item, seeds averaged within an item; say what has to be left out."""
    base, head = _by_item(base), _by_item(head)
    reasons = []
    if not base and head and rule.ideal is not None:
        base = dict.fromkeys(head, rule.ideal)
        reasons.append(f"the base has no {rule.metric}; compared with the ideal {rule.ideal:g}")
    both = {item: _item_means(base[item], score) for item, score in head.items() if item in base}
    kept = {item: pair for item, pair in both.items() if math.isfinite(pair[0]) and math.isfinite(pair[1])}
    left_out = len(base.keys() | head.keys()) - len(kept)
    if left_out and kept:
        reasons.append(f"{left_out} items have no finite {rule.metric} on one side or both and were left out")
    sides = np.array(list(kept.values()), dtype=np.float64).reshape(-1, 2)
    if rule.defect_above is not None:
        sides = (sides > rule.defect_above).astype(np.float64)
    gains = sides[:, 1] - sides[:, 0]
    if rule.direction == "lower":
        gains = 0.0 - gains  # no negative zeros
    return Pairs(list(kept), sides[:, 0], sides[:, 1], gains, tuple(reasons))


def _by_item(scores: Any) -> Mapping[str, Any]:
    """A mapping as it is, a Series by its index, where a repeated item holds its seeds."""
    if scores is None or isinstance(scores, Mapping):
        return scores or {}
    series: pd.Series = scores
    grouped = series if series.index.is_unique else series.groupby(level=0, sort=False).agg(list)
    by_item: dict[Any, Any] = grouped.to_dict()
    return by_item


def _item_means(base: Any, head: Any) -> tuple[float, float]:
    """Means over the seeds of one item; NaN where there is none. Equal numbers of seeds are matched one by one."""
    if isinstance(base, int | float) and isinstance(head, int | float):
        return base, head
    one, other = _seeds(base), _seeds(head)
    if one.size == other.size:
        known = np.isfinite(one) & np.isfinite(other)
        one, other = one[known], other[known]
    return _mean(one), _mean(other)


def _seeds(scores: Any) -> Array:
    values = np.atleast_1d(np.asarray(scores, dtype=object))
    return np.array([math.nan if value is None else float(value) for value in values], dtype=np.float64)


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan
