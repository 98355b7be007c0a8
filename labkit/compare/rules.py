"""The rules that others gate with, so that ours can be tabled beside them.

They know raw numbers of two sides and answer one question: would this rule call the head worse? They say nothing
of passing, and none of them says how sure it is.
"""

from __future__ import annotations

from math import comb
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from labkit.compare.margins import Side
from labkit.compare.statistics import Array, t_interval

ASV_FACTOR, ASV_P = 1.1, 0.002  # defaults of `asv compare` and `asv continuous`


def asv_rule(
    base: ArrayLike, head: ArrayLike, direction: Side = "lower", *, factor: float = ASV_FACTOR
) -> bool:
    """airspeed velocity: the median is worse by the factor, and a two-sided Mann-Whitney p of the samples is < 0.002.

    With too few samples to reach that p, 99 % intervals must not overlap instead (asv's own are of the median under
    a Laplace model; Student's stand in for them here). Samples are taken as they are, repetitions of one process
    included. Values must be above 0.
    """
    one, other = _both(base, head)
    old, new = float(np.median(one)), float(np.median(other))
    worse = new > old * factor if direction == "lower" else new < old / factor
    return worse and _asv_is_different(one, other)


def ratio_rule(
    base: ArrayLike,
    head: ArrayLike,
    direction: Side = "lower",
    *,
    limit: float = 0.10,
    of: Literal["mean", "median"] = "mean",
) -> bool:
    """A plain threshold: the mean (or median) is worse by more than `limit`, 0.10 being 10 %. Values above 0."""
    one, other = _both(base, head)
    reduce = np.mean if of == "mean" else np.median
    change = float(reduce(other) / reduce(one)) - 1
    return change > limit if direction == "lower" else change < -limit


def _asv_is_different(one: Array, other: Array) -> bool:
    if 1 / comb(one.size + other.size, min(one.size, other.size)) < ASV_P:
        from scipy.stats import mannwhitneyu

        return bool(mannwhitneyu(one, other).pvalue < ASV_P)
    if min(one.size, other.size) < 2:
        return False
    (low, high), (other_low, other_high) = (t_interval(x, 0.99) for x in (one, other))
    return high < other_low or other_high < low


def _both(base: ArrayLike, head: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(base, dtype=np.float64).ravel(), np.asarray(head, dtype=np.float64).ravel()
