"""Two groups of unpaired numbers: the Mann-Whitney test, and the shift between the groups with its exact bounds.

It knows numbers only. Ranks bear the one process in ten that a neighbour disturbed, which means and Student's t do
not. Mann and Whitney 1947; Hodges and Lehmann, Estimates of Location Based on Rank Tests, 1963.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from labkit.compare.statistics import Array


class Shift(NamedTuple):
    """How far the second group lies above the first: Hodges-Lehmann estimate and one-sided bounds (infinite if the
    groups are too small for any), and p of "it is not above" and "it is not below"."""

    value: float
    low: float
    high: float
    p_above: float
    p_below: float


def shift(first: Array, second: Array, confidence: float) -> Shift:
    """Compare groups [M] and [N], one number at least in each; ties count against both p-values."""
    steps = np.sort((second[:, None] - first[None, :]).ravel())
    tail = np.cumsum(_null_distribution(first.size, second.size))  # tail[u] = P(U <= u)
    beyond = int(
        np.searchsorted(tail, (1 - confidence) * (1 + 1e-9), side="right")
    )  # steps that a bound may pass
    return Shift(
        value=float(np.median(steps)),
        low=float(steps[beyond - 1]) if beyond else -math.inf,
        high=float(steps[-beyond]) if beyond else math.inf,
        p_above=float(tail[(steps <= 0).sum()]),
        p_below=float(tail[(steps >= 0).sum()]),
    )


@cache
def _null_distribution(m: int, n: int) -> Array:
    """P(U = u) for u = 0 … m n when both groups are draws of one: coefficients of a Gaussian binomial."""
    counts = np.ones(1)
    for k in range(1, m + 1):
        # times (1 - x^(n + k)) / (1 - x^k)
        grown = np.concatenate([counts, np.zeros(n + k)])
        grown[n + k :] -= counts
        for i in range(k, grown.size):
            grown[i] += grown[i - k]
        counts = grown[: k * n + 1]
    probabilities: Array = counts / counts.sum()
    return probabilities
