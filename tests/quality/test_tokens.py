"""Token loops: planted repetitions are found where they are, drawn codes and short holds are left alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.quality.tokens import find_loop


def drawn(steps: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 625, (steps, 4))


@given(seed=st.integers(0, 10**6), period=st.integers(2, 90), start=st.integers(0, 60))
def test_a_planted_loop_is_found_with_its_period(seed: int, period: int, start: int) -> None:
    copies = max(4, 1 + -(-24 // period) + 1)
    cell = drawn(period, seed)
    codes = np.concatenate([drawn(start, seed + 1), np.tile(cell, (copies, 1)), drawn(50, seed + 2)])
    loop = find_loop(codes)
    assert loop is not None
    assert loop.period == period
    assert abs(loop.start - start) <= period


@given(seed=st.integers(0, 10**6), steps=st.integers(0, 400))
def test_random_codes_have_no_loop(seed: int, steps: int) -> None:
    assert find_loop(drawn(steps, seed)) is None


@pytest.mark.parametrize(("held", "found"), [(20, False), (40, False), (60, True)])
def test_a_held_code_counts_after_a_second(held: int, found: bool) -> None:
    codes = np.concatenate([drawn(30), np.repeat(drawn(1, 9), held, axis=0), drawn(30, 2)])
    loop = find_loop(codes)
    assert (loop is not None) is found
    if loop:
        assert loop.period == 1


def test_a_loop_with_a_few_flips_is_still_one() -> None:
    codes = np.tile(drawn(14), (6, 1))
    codes[np.random.default_rng(3).integers(0, len(codes), 4), 3] = 600
    loop = find_loop(codes)
    assert loop is not None
    assert loop.period == 14


def test_wrong_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"\(12,\)"):
        find_loop(np.zeros(12, np.int64))
