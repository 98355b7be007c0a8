"""Statistics of paired changes: pure functions on arrays, one change per item.

It knows numbers only. All randomness is seeded, so a table printed twice is the same table. Distributions come from
`scipy.special`: the same functions as in `scipy.stats`, loaded in a tenth of the time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EXACT_ITEMS = 14  # up to 2^14 sign patterns are enumerated, above they are drawn


class Interval(NamedTuple):
    low: float
    high: float


def t_interval(deltas: Array, confidence: float) -> Interval:
    """Two-sided Student interval of the mean of deltas [N], N >= 2; a point when all deltas are equal."""
    from scipy.special import stdtrit

    mean, error = float(deltas.mean()), _standard_error(deltas)
    reach = float(stdtrit(deltas.size - 1, (1 + confidence) / 2)) * error
    return Interval(mean - reach, mean + reach)


def t_p_value(deltas: Array) -> float:
    """Two-sided p of "the mean of deltas [N] is zero", N >= 2; 0 or 1 when all deltas are equal."""
    from scipy.special import stdtr

    mean, error = float(deltas.mean()), _standard_error(deltas)
    if error == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(deltas.size - 1, -abs(mean / error)))


def sign_flip_p_value(deltas: Array, *, draws: int = 20_000, seed: int = 0) -> float:
    """Two-sided p under "each change is as likely up as down" (Fisher's randomization test of pairs).

    Exact up to 14 items, otherwise from seeded draws with the observed pattern counted. It cannot fall below
    2 / 2^N: with fewer than six items it never reaches 0.05.
    """
    count = deltas.size
    if count <= EXACT_ITEMS:
        bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        signs = 1.0 - 2.0 * bits
        extra = 0
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, count))
        extra = 1
    observed = abs(float(deltas.sum()))
    as_extreme = int((np.abs(signs @ deltas) >= observed * (1 - 1e-12)).sum())
    return (as_extreme + extra) / (len(signs) + extra)


def bootstrap_interval(deltas: Array, confidence: float, *, draws: int = 2_000, seed: int = 0) -> Interval:
    """Interval of the mean of deltas [N] from resampling items: the expanded percentile bootstrap.

    The plain percentile interval is too narrow for few items; its levels are widened so that for normal data it
    agrees with Student's (Hesterberg, What Teachers Should Know About the Bootstrap, 2015, section 5.1).
    """
    from scipy.special import ndtr, stdtrit

    count = deltas.size
    spread = math.sqrt(count / (count - 1)) * float(stdtrit(count - 1, (1 + confidence) / 2))
    level = 100 * float(ndtr(-spread))
    picks = np.random.default_rng(seed).integers(0, count, (draws, count))
    low, high = np.percentile(deltas[picks].mean(1), [level, 100 - level])
    return Interval(float(low), float(high))


def _standard_error(deltas: Array) -> float:
    spread = float(deltas.std(ddof=1))
    # equal deltas differ by rounding only
    return 0.0 if spread <= 1e-12 * float(np.abs(deltas).max()) else spread / math.sqrt(deltas.size)
