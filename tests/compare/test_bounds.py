"""Bounds with known truth: how often they miss, what they find, and how honest the number of items needed is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labkit.compare.bounds import (
    flip_bounds,
    flip_p_above,
    flip_p_below,
    holm,
    items_needed,
    student_bounds,
    student_p_above,
    student_p_below,
    subset_means,
    summarize,
)

ALPHA = 0.01
RANDOM = np.random.default_rng
Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

# noise of mean 0; losses have their long tail downwards: a sentence that broke
NOISE: dict[str, Noise] = {
    "normal": lambda random, shape: random.normal(0, 1, shape),
    "uniform": lambda random, shape: random.uniform(-1, 1, shape),
    "heavy": lambda random, shape: random.standard_t(3, shape),
    "skewed losses": lambda random, shape: 2 - random.gamma(2, 1, shape),
    "very skewed losses": lambda random, shape: np.exp(0.5) - random.lognormal(0, 1, shape),
}
# share of 20 000 samples that are called surely below, surely above the truth itself: nominally 1 % each
MOST_ALARMS = {
    "normal": (0.011, 0.011),
    "uniform": (0.011, 0.011),
    "heavy": (0.011, 0.011),
    "skewed losses": (0.006, 0.022),
    "very skewed losses": (0.003, 0.045),
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [24, 60])
def test_alarms_at_the_margin_itself_are_rare(noise: str, size: int) -> None:
    sample = summarize(NOISE[noise](RANDOM(0), (20_000, size)) - 0.2)
    below, above = MOST_ALARMS[noise]
    assert (student_p_below(sample, -0.2) <= ALPHA).mean() <= below
    assert (student_p_above(sample, -0.2) <= ALPHA).mean() <= above


def test_skewed_losses_pass_less_often_than_students_t_lets_them() -> None:
    gains = NOISE["very skewed losses"](RANDOM(1), (20_000, 24))
    ours = (student_p_above(summarize(gains), 0) <= ALPHA).mean()
    students = (stats.ttest_1samp(gains, 0, axis=1, alternative="greater").pvalue <= ALPHA).mean()
    assert students > 0.07
    assert ours < students / 2


@pytest.mark.parametrize(("spread", "distance"), [(0.5, 0.2), (0.3, 0.1), (1.0, 0.3)])
def test_the_number_of_items_needed_decides_nine_times_in_ten(spread: float, distance: float) -> None:
    size = int(items_needed(spread, distance, 1 - ALPHA, power=0.9))
    sample = summarize(RANDOM(2).normal(0, spread, (10_000, size)))
    assert 0.88 <= (student_p_above(sample, -distance) <= ALPHA).mean() <= 0.93


@pytest.mark.parametrize(("truth", "spread"), [(0.0, 0.5), (-0.1, 0.3), (-0.3, 0.3)])
def test_the_number_of_items_needed_is_honest_after_an_inconclusive_pilot(
    truth: float, spread: float
) -> None:
    """Pilots of 24 sentences against a margin of 0.2; each undecided one is repeated with the number it asked for."""
    random, limit, decided = RANDOM(3), -0.2, []
    pilots = summarize(random.normal(truth, spread, (600, 24)))
    undecided = (student_p_below(pilots, limit) > ALPHA) & (student_p_above(pilots, limit) > ALPHA)
    for size in items_needed(pilots.spread, np.abs(pilots.mean - limit), 1 - ALPHA)[undecided]:
        again = summarize(random.normal(truth, spread, (1, int(min(size, 5_000)))))
        right = student_p_above if truth > limit else student_p_below
        decided.append(right(again, limit)[0] <= ALPHA)
    assert len(decided) > 300
    assert np.mean(decided) >= 0.82


def test_needed_grows_with_spread_and_shrinks_with_distance() -> None:
    assert items_needed(1.0, 0.1, 0.99) > items_needed(0.5, 0.1, 0.99) > items_needed(0.5, 0.2, 0.99)
    assert items_needed(1.0, 0.1, 0.999) > items_needed(1.0, 0.1, 0.99)
    assert np.isinf(items_needed(1.0, 0.0, 0.99))
    assert np.isinf(items_needed(0.0, 0.0, 0.99))
    assert items_needed(0.0, 0.1, 0.99) < 5


# multiples of 1/64: sums and means of such numbers carry no rounding that a tie could turn over
values = st.integers(-64_000, 64_000).map(lambda whole: whole / 64)


@settings(deadline=None)
@given(st.lists(values, min_size=3, max_size=12), values)
def test_bounds_and_p_values_say_the_same(gains: list[float], limit: float) -> None:
    row = np.array(gains)
    sample = summarize(row[None])
    low, high = (float(bound[0]) for bound in student_bounds(sample, 0.99))
    slack = 1e-6 * (1 + np.abs(row).max() + abs(limit))
    assert low <= row.mean() + slack and high >= row.mean() - slack
    assert (student_p_below(sample, limit)[0] <= ALPHA) or not high < limit - slack
    assert not (student_p_below(sample, limit)[0] <= ALPHA) or high < limit + slack
    assert (student_p_above(sample, limit)[0] <= ALPHA) or not low > limit + slack
    assert not (student_p_above(sample, limit)[0] <= ALPHA) or low > limit - slack

    means = subset_means(row)
    low, high = flip_bounds(means, 0.99)
    assert low <= high
    assert (flip_p_below(means, limit) <= ALPHA) == (high < limit)
    assert (flip_p_above(means, limit) <= ALPHA) == (low > limit)
    if len(gains) < 7:
        assert (low, high) == (-np.inf, np.inf)


def test_student_without_skewness_is_scipys() -> None:
    gains = np.array([-3.0, -1.0, 0.0, 1.0, 3.0]) + 0.5
    sample = summarize(gains[None])
    assert student_p_below(sample, 2.0)[0] == pytest.approx(
        stats.ttest_1samp(gains, 2.0, alternative="less").pvalue
    )
    low, high = student_bounds(sample, 0.99)
    assert (low[0], high[0]) == pytest.approx(tuple(stats.ttest_1samp(gains, 0).confidence_interval(0.98)))


def test_rows_of_unequal_size_are_judged_as_if_alone() -> None:
    one, other = RANDOM(4).normal(0.1, 1, 30), RANDOM(5).exponential(1, 11)
    table = np.full((2, 30), np.nan)
    table[0], table[1, :11] = one, other
    together = student_p_above(summarize(table), [0.0, 0.5])
    alone = [student_p_above(summarize(one[None]), 0.0)[0], student_p_above(summarize(other[None]), 0.5)[0]]
    assert together == pytest.approx(alone)


def test_equal_gains_are_certain_except_on_the_margin() -> None:
    sample = summarize(np.full((3, 5), 0.1))
    assert student_p_below(sample, [0.2, 0.1, 0.0]).tolist() == [0, 1, 1]
    assert student_p_above(sample, [0.2, 0.1, 0.0]).tolist() == [1, 1, 0]


@pytest.mark.parametrize("size", [8, 20])
def test_sign_flips_alarm_rarely_at_the_margin(size: int) -> None:
    random, alarms = RANDOM(6), 0
    for _ in range(1_000):
        means = subset_means(random.laplace(-0.2, 1, size), draws=2_000, seed=1)
        alarms += flip_p_below(means, -0.2) <= ALPHA
    assert alarms <= 20  # nominally 10; more than 20 comes once in 600


def test_holm_agrees_with_its_definition() -> None:
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_only_raises_keeps_the_order_and_never_beats_bonferroni(p_values: list[float]) -> None:
    p, adjusted = np.array(p_values), holm(p_values)
    assert (adjusted >= p).all() and (adjusted <= np.minimum(p * p.size, 1)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
