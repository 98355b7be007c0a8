"""One-sided bounds and p-values of a mean change, Holm's correction, and the number of items a decision takes.

It knows arrays of gains (changes turned so that above zero is better) and nothing of metrics or verdicts.
Student's functions take arrays, so a family of fifty metrics costs one call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labkit.compare.statistics import EXACT_ITEMS, Array


@dataclass(frozen=True)
class Sample:
    """Mean, standard deviation, size and skewness of samples, one entry a metric."""

    mean: Array
    spread: Array
    count: Array
    skew: Array

    @property
    def error(self) -> Array:
        """Standard error of the mean."""
        return self.spread / np.sqrt(self.count)


def summarize(gains: Array) -> Sample:
    """Reduce gains [M, N], NaN where a metric has fewer than N items; every row needs two at least."""
    count = np.isfinite(gains).sum(1).astype(np.float64)
    mean = np.nansum(gains, 1) / count
    centred = gains - mean[:, None]
    spread = np.sqrt(np.nansum(centred**2, 1) / (count - 1))
    # equal gains differ by rounding only
    spread[spread <= 1e-12 * np.nanmax(np.abs(gains), 1)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.nansum(centred**3, 1) / spread**3 * count / ((count - 1) * (count - 2))
    return Sample(mean, spread, count, np.where((spread > 0) & (count > 2), skew, 0.0))


def student_bounds(sample: Sample, confidence: float) -> tuple[Array, Array]:
    """Lower and upper one-sided bounds of each mean: each one alone holds with `confidence`.

    Student's, or those of Hall's transformation for skewed samples where they are wider. Losses have long tails (a
    sentence that broke), and Student's t would pass three times too many samples that happened to miss the tail.
    """
    from scipy.special import stdtrit

    reach = stdtrit(sample.count - 1, confidence)
    low = sample.mean - np.maximum(reach, _backward(reach, sample)) * sample.error
    high = sample.mean - np.minimum(-reach, _backward(-reach, sample)) * sample.error
    return low, high


def student_p_below(sample: Sample, limit: ArrayLike) -> Array:
    """p of "the true mean is at least `limit`": small when it is surely below. 0 or 1 without spread.

    The larger one of Student's and that of Hall's transformation, as in `student_bounds`.
    """
    from scipy.special import stdtr

    distance = sample.mean - np.asarray(limit, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(sample.error > 0, distance / sample.error, np.where(distance < 0, -np.inf, np.inf))
    p: Array = stdtr(sample.count - 1, np.maximum(score, _forward(score, sample)))
    return p


def student_p_above(sample: Sample, limit: ArrayLike) -> Array:
    """p of "the true mean is at most `limit`": small when it is surely above."""
    mirrored = replace(sample, mean=-sample.mean, skew=-sample.skew)
    return student_p_below(mirrored, -np.asarray(limit, dtype=np.float64))


def _forward(score: Array, sample: Sample) -> Array:
    """Take the skewness out of t-scores: monotone and cubic (Hall, On the Removal of Skewness by Transformation,
    Journal of the Royal Statistical Society B 54, 1992)."""
    tilt, flat = _tilt(sample)
    return np.where(flat, score, ((1 + tilt * score / 3) ** 3 - 1) / tilt + tilt / 6)


def _backward(score: Array, sample: Sample) -> Array:
    """The inverse of `_forward`."""
    tilt, flat = _tilt(sample)
    return np.where(flat, score, 3 / tilt * (np.cbrt(1 + tilt * (score - tilt / 6)) - 1))


def _tilt(sample: Sample) -> tuple[Array, NDArray[np.bool_]]:
    """Skewness over the root of the size, 1 in place of none; and where there is none."""
    tilt = sample.skew / np.sqrt(sample.count)
    flat = np.abs(tilt) < 1e-8
    return np.where(flat, 1.0, tilt), flat


def subset_means(gains: Array, *, draws: int = 20_000, seed: int = 0) -> Array:
    """Sorted means of subsets of gains [N]: all 2^N - 1 up to 14 items, seeded draws above.

    When each gain lies symmetrically about the true mean, that mean is equally likely to fall into any gap
    between them (Hartigan, Using Subsample Values as Typical Values, JASA 64, 1969): the sign-flip test, turned
    into bounds.
    """
    count = gains.size
    if count <= EXACT_ITEMS:
        chosen = (np.arange(1, 2**count)[:, None] >> np.arange(count)) & 1
    else:
        chosen = np.random.default_rng(seed).integers(0, 2, (draws, count))
        chosen = chosen[chosen.any(1)]
    means: Array = np.sort(chosen @ gains / chosen.sum(1))
    return means


def flip_bounds(means: Array, confidence: float) -> tuple[float, float]:
    """Lower and upper one-sided bounds from `subset_means`; infinite with too few items (7 are needed at 99 %)."""
    steps = math.floor((1 - confidence) * (means.size + 1) * (1 + 1e-9))
    if steps < 1:
        return -math.inf, math.inf
    return float(means[steps - 1]), float(means[-steps])


def flip_p_below(means: Array, limit: float) -> float:
    """p of "the true mean is at least `limit`" from `subset_means`."""
    return float((means.size - np.searchsorted(means, limit, side="left") + 1) / (means.size + 1))


def flip_p_above(means: Array, limit: float) -> float:
    """p of "the true mean is at most `limit`" from `subset_means`."""
    return float((np.searchsorted(means, limit, side="right") + 1) / (means.size + 1))


def holm(p_values: ArrayLike) -> Array:
    """Adjusted p-values [M]: those at or below alpha are alarms, of which a false one comes with at most alpha.

    Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def items_needed(spread: ArrayLike, distance: ArrayLike, confidence: ArrayLike, power: float = 0.9) -> Array:
    """How many items show with `power` that a mean lies `distance` from a margin; infinite at distance 0.

    (z_confidence + z_power)^2 (spread / distance)^2 + z_confidence^2 / 2, the normal size with its correction for
    Student's t (Guenther, Sample Size Formulas for Normal Theory T Tests, The American Statistician 35, 1981).
    """
    from scipy.special import ndtri

    sure = ndtri(np.asarray(confidence, dtype=np.float64))
    spread, distance = np.asarray(spread, dtype=np.float64), np.asarray(distance, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(spread == 0, np.where(distance == 0, np.inf, 0.0), spread / distance)
    needed: Array = np.ceil((sure + float(ndtri(power))) ** 2 * ratio**2 + sure**2 / 2)
    return needed
