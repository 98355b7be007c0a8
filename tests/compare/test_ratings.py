"""Intervals of human ratings: coverage where raters and items both vary, and none where there is nothing to go by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from labkit.compare import two_way_interval
from labkit.errors import UserError


def votes(
    random: np.random.Generator, raters: int, items: int, *, of_raters: float, of_items: float, rest: float,
    kept: float = 1.0, truth: float = 3.5,
) -> pd.DataFrame:  # fmt: skip
    table = (
        truth
        + random.normal(0, of_raters, (raters, 1))
        + random.normal(0, of_items, (1, items))
        + random.normal(0, rest, (raters, items))
    )
    frame = pd.DataFrame(table).rename_axis("rater").melt(ignore_index=False, var_name="item").reset_index()
    return frame[random.random(len(frame)) < kept]


@pytest.mark.parametrize(
    ("of_raters", "of_items", "rest", "kept"),
    [
        (0.5, 0.3, 0.6, 1.0),
        (0.0, 0.5, 0.5, 1.0),
        (0.5, 0.0, 0.5, 1.0),
        (0.0, 0.0, 1.0, 1.0),
        (0.5, 0.3, 0.6, 0.6),
    ],
)
def test_intervals_cover_the_truth(of_raters: float, of_items: float, rest: float, kept: float) -> None:
    random, hits, naive = np.random.default_rng(0), 0, 0
    for _ in range(150):
        frame = votes(random, 6, 16, of_raters=of_raters, of_items=of_items, rest=rest, kept=kept)
        found = two_way_interval(frame, 0.95)
        assert found.low is not None and found.high is not None
        hits += found.low <= 3.5 <= found.high
        naive += abs(frame["value"].mean() - 3.5) <= 1.96 * frame["value"].std() / np.sqrt(len(frame))
    assert hits / 150 >= 0.90
    if of_raters:
        assert naive / 150 < 0.75  # what votes taken as independent would claim to be 95 %


def test_a_balanced_table_gives_the_analysis_of_variance() -> None:
    """Worked by hand: mean squares 27/2 of raters, 13/6 of items, 1/2 of the rest; six cells."""
    frame = pd.DataFrame(
        {"rater": list("aaabbb"), "item": [1, 2, 3] * 2, "value": [1.0, 2.0, 4.0, 5.0, 5.0, 6.0]}
    )
    ms_raters, ms_items, ms_rest = 27 / 2, 13 / 6, 1 / 2
    variance = (ms_raters + ms_items - ms_rest) / 6
    degrees = (6 * variance) ** 2 / (ms_raters**2 / 1 + ms_items**2 / 2 + ms_rest**2 / 2)
    found = two_way_interval(frame, 0.95)
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    assert found.mean == pytest.approx(23 / 6)
    assert (found.low, found.high) == pytest.approx((23 / 6 - reach, 23 / 6 + reach))
    assert (found.raters, found.items, found.votes) == (2, 3, 6)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 5)), min_size=12, max_size=40),
    st.floats(-3, 3),
)
def test_a_shift_of_all_votes_shifts_the_interval(cells: list[tuple[int, int, int]], by: float) -> None:
    frame = pd.DataFrame(cells, columns=["rater", "item", "value"])
    one, other = two_way_interval(frame), two_way_interval(frame.assign(value=frame["value"] + by))
    assert one.reason == other.reason
    if one.low is not None and one.high is not None:
        assert one.low <= one.mean <= one.high  # type: ignore[operator]
        assert (other.low, other.high) == pytest.approx((one.low + by, one.high + by), abs=1e-6)


def test_without_grounds_there_is_no_interval() -> None:
    frame = pd.DataFrame({"rater": ["a", "a"], "item": ["x", "y"], "value": [3.0, 4.0]})
    found = two_way_interval(frame)
    assert (found.mean, found.low, found.reason) == (3.5, None, "one rater tells nothing of other raters")
    one_item = frame.assign(rater=["a", "b"], item="x")
    assert two_way_interval(one_item).reason == "one item tells nothing of other items"
    scattered = frame.assign(rater=["a", "b"])
    assert two_way_interval(scattered).reason == "too few votes to tell raters from items"
    empty = two_way_interval(frame.iloc[:0])
    assert (empty.mean, empty.votes, empty.reason) == (None, 0, "there are no votes")
    with pytest.raises(UserError, match="no column item"):
        two_way_interval(frame.drop(columns="item"))


def test_equal_votes_leave_a_point() -> None:
    frame = pd.DataFrame({"rater": list("aabb"), "item": list("xyxy"), "value": [4.0] * 4})
    assert (two_way_interval(frame).low, two_way_interval(frame).high) == (4.0, 4.0)
