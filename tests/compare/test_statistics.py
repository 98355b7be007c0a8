"""Statistics with known truth: coverage, false alarms, power, and agreement with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from labkit.compare.statistics import bootstrap_interval, sign_flip_p_value, t_interval, t_p_value

numbers = st.lists(st.floats(-100, 100, allow_subnormal=False), min_size=2, max_size=12)


def test_student_agrees_with_scipy() -> None:
    deltas = np.random.default_rng(0).normal(0.3, 1, 17)
    reference = stats.ttest_1samp(deltas, 0)
    assert t_p_value(deltas) == pytest.approx(reference.pvalue)
    assert t_interval(deltas, 0.95) == pytest.approx(tuple(reference.confidence_interval(0.95)))


def test_sign_flip_exact_and_drawn_agree_with_scipy() -> None:
    for size in (8, 20):
        deltas = np.random.default_rng(1).normal(0.4, 1, size)
        reference = stats.permutation_test(
            (deltas,), np.mean, permutation_type="samples", n_resamples=20_000, rng=0
        )
        assert sign_flip_p_value(deltas) == pytest.approx(reference.pvalue, abs=0.01)


@given(numbers)
def test_p_values_are_symmetric_probabilities(values: list[float]) -> None:
    deltas = np.array(values)
    for p_value in (t_p_value, sign_flip_p_value):
        assert 0 <= p_value(deltas) <= 1
        assert p_value(-deltas) == pytest.approx(p_value(deltas), abs=1e-9)
    assert sign_flip_p_value(deltas) >= 2 / 2 ** len(values) - 1e-12


@given(numbers, st.floats(0.5, 0.999))
def test_intervals_hold_the_mean_and_are_repeatable(values: list[float], confidence: float) -> None:
    deltas = np.array(values)
    low, high = bootstrap_interval(deltas, confidence)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert bootstrap_interval(deltas, confidence) == (low, high)
    inner = t_interval(deltas, confidence)
    assert inner.low <= deltas.mean() <= inner.high


def test_equal_changes_are_certain_and_no_change_is_none() -> None:
    assert t_p_value(np.full(5, 0.1)) == 0.0
    assert t_p_value(np.zeros(5)) == 1.0
    assert sign_flip_p_value(np.zeros(5)) == 1.0
    assert t_interval(np.full(5, 0.1), 0.99) == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize(("size", "least"), [(8, 0.90), (20, 0.93)])
def test_bootstrap_covers_the_truth(size: int, least: float) -> None:
    """400 experiments of skewed changes around a mean of 1: nominal 95 % intervals."""
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(400):
        low, high = bootstrap_interval(random.gamma(4, 0.25, size), 0.95, draws=500)
        hits += low <= 1 <= high
    assert least <= hits / 400 <= 0.99
