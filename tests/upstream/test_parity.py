from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import ParityError
from labkit.upstream.parity import compare, format_table


def one(name: str, lab: object, upstream: object):
    (check,) = compare({name: np.asarray(lab)}, {name: np.asarray(upstream)})
    return check


@pytest.mark.parametrize(
    ("kind", "limit"), [("logits", 1e-4), ("hidden", 1e-4), ("mel", 1e-4), ("audio", 1e-5)]
)
def test_numbers_pass_up_to_the_limit_of_their_kind_and_fail_above(kind: str, limit: float) -> None:
    zeros = np.zeros(3, np.float32)
    assert one(f"x/{kind}", zeros + np.float32(0.9 * limit), zeros).passed
    failed = one(f"x/{kind}", zeros + np.float32(1.1 * limit), zeros)
    assert not failed.passed
    assert failed.difference == pytest.approx(1.1 * limit)


def test_one_bad_element_among_many_fails() -> None:
    upstream = np.ones((4, 5), np.float32)
    lab = upstream.copy()
    lab[2, 3] += 1
    assert not one("x/mel", lab, upstream).passed


def test_nan_never_passes() -> None:
    assert not one("x/audio", [np.nan], [0.0]).passed


@pytest.mark.parametrize(("lab", "upstream"), [([1, 2, 3], [1, 2, 4]), (["a", "b", "c"], ["a", "b", "x"])])
def test_codes_and_strings_must_be_equal(lab: list, upstream: list) -> None:
    check = one("x/codes", lab, upstream)
    assert check.difference == 1 and not check.passed and check.scale is None
    assert one("x/codes", upstream, upstream).passed


def test_unlike_shapes_and_missing_answers_are_errors() -> None:
    with pytest.raises(ParityError, match=r"x/mel.*\(2,\).*\(3,\)"):
        one("x/mel", np.zeros(2), np.zeros(3))
    with pytest.raises(ParityError, match="y/mel"):
        compare({"x/mel": np.zeros(1)}, {"x/mel": np.zeros(1), "y/mel": np.zeros(1)})


def test_the_table_shows_failures() -> None:
    checks = compare(
        {"a/mel": np.ones(2), "b/ids": np.arange(3)}, {"a/mel": np.zeros(2), "b/ids": np.arange(3)}
    )
    table = format_table("title", checks)
    assert "| a/mel | 2 | 0 | 1.0e+00 | 1e-04 | **FAILED** |" in table
    assert "| b/ids | 3 |  | 0 unequal | equal | ok |" in table
