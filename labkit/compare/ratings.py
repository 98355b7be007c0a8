"""The interval of a mean of human ratings, where both the listeners and the clips are samples.

It knows a table of votes. A listener who is strict is strict on every clip, and a clip that is poor is poor to every
listener; an interval over votes alone would take those for independent and be far too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labkit.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RatingInterval:
    """Mean of ratings with its two-sided interval; without one, low and high are None and `reason` says why."""

    mean: float | None
    low: float | None
    high: float | None
    raters: int
    items: int
    votes: int
    reason: str = ""


def two_way_interval(votes: pd.DataFrame, confidence: float = 0.95) -> RatingInterval:
    """Mean of column `value` over columns `rater` and `item`, with an interval for new raters and new items.

    Votes of a rater on an item are averaged first, empty ones left out. Variance of the mean: (MS_raters + MS_items -
    MS_rest) / cells as in the two-way analysis of variance with random effects, never below the larger of the two;
    Student's t with Satterthwaite's degrees of freedom. Tables with holes are taken by the same formulas around a
    fit of rater and item effects, which is an approximation. Raises `UserError` without the columns.
    """
    lacking = {"rater", "item", "value"} - set(votes.columns)
    if lacking:
        raise UserError(f"the votes have no column {', '.join(sorted(lacking))}; give rater, item and value.")
    cells = votes.dropna(subset=["value"]).groupby(["rater", "item"])["value"].mean().reset_index()
    rater, raters = cells["rater"].factorize()
    item, items = cells["item"].factorize()
    value = cells["value"].to_numpy(dtype=np.float64)
    counts = len(raters), len(items), int(votes["value"].notna().sum())
    if not value.size:
        return RatingInterval(None, None, None, *counts, reason="there are no votes")
    mean = float(value.mean())
    if min(counts[:2]) < 2:
        few = "rater" if len(raters) < 2 else "item"
        return RatingInterval(mean, None, None, *counts, reason=f"one {few} tells nothing of other {few}s")
    free = value.size - len(raters) - len(items) + 1
    if free < 1:
        return RatingInterval(mean, None, None, *counts, reason="too few votes to tell raters from items")
    reach = _reach(value - mean, rater, item, free, confidence)
    return RatingInterval(mean, mean - reach, mean + reach, *counts)


def _reach(centred: np.ndarray, rater: np.ndarray, item: np.ndarray, free: int, confidence: float) -> float:
    """Half the width of the interval of a mean of cells [N], centred, with their rater and item numbers [N]."""
    from scipy.special import stdtrit

    cells = centred.size
    parts, degrees = [], []
    for group in (rater, item):
        sums = np.bincount(group, centred)
        parts.append(float((sums**2).sum()) * sums.size / (sums.size - 1) / cells**2)
        degrees.append(sums.size - 1)
    design = np.concatenate([np.eye(rater.max() + 1)[rater], np.eye(item.max() + 1)[item]], axis=1)
    rest = centred - design @ np.linalg.lstsq(design, centred, rcond=None)[0]
    parts.append(float((rest**2).sum()) / free / cells)
    degrees.append(free)
    variance = max(parts[0] + parts[1] - parts[2], parts[0], parts[1])
    if variance == 0:
        return 0.0
    # a part that came out at zero by luck must not lend its freedom to the others
    weights = sum(part**2 / degree for part, degree in zip(parts, degrees, strict=True))
    freedom = min(max(variance**2 / weights, 1.0), float(max(degrees[:2])))
    return float(stdtrit(freedom, (1 + confidence) / 2)) * math.sqrt(variance)
