"""Unpaired groups by rank, against scipy's exact test and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labkit.compare.ranks import shift

RANDOM = np.random.default_rng


@pytest.mark.parametrize(("m", "n"), [(10, 5), (3, 4), (1, 1), (40, 30)])
def test_p_values_are_scipys_exact_ones(m: int, n: int) -> None:
    first, second = RANDOM(0).normal(0, 1, m), RANDOM(1).normal(0.4, 1, n)
    found = shift(first, second, 0.99)
    for side, p in (("greater", found.p_above), ("less", found.p_below)):
        exact = stats.mannwhitneyu(second, first, alternative=side, method="exact").pvalue
        assert p == pytest.approx(exact, abs=1e-10)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=10),
    st.lists(st.integers(0, 9), min_size=1, max_size=8),
    st.floats(0.6, 0.995),
)
def test_bounds_exclude_zero_exactly_when_the_test_rejects(
    first: list[int], second: list[int], sure: float
) -> None:
    found = shift(np.array(first, float), np.array(second, float), sure)
    assert found.low <= found.value <= found.high
    assert (found.low > 0) == (found.p_above <= (1 - sure) * (1 + 1e-9))
    assert (found.high < 0) == (found.p_below <= (1 - sure) * (1 + 1e-9))


def test_bounds_miss_the_truth_as_rarely_as_they_say_whatever_the_noise() -> None:
    random, missed = RANDOM(2), np.zeros(2)
    for _ in range(3_000):
        found = shift(random.standard_t(2, 10), 0.7 + random.standard_t(2, 5), 0.95)
        missed += [found.low > 0.7, found.high < 0.7]
    assert (missed / 3_000 <= 0.058).all()  # nominally 5 % each


def test_one_disturbed_process_moves_little() -> None:
    random = RANDOM(3)
    first, second = random.normal(0, 0.01, 10), random.normal(0, 0.01, 5)
    second[2] = 3.0
    assert abs(shift(first, second, 0.99).value) < 0.02
