"""Verdicts with known truth: the right word, few false alarms, tildes on what is not decided."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.compare import Rule, better_direction, difference, ratio
from labkit.errors import UserError

RANDOM = np.random.default_rng


def frame(values: dict[str, list[float]], metric: str = "latency_s", **columns: object) -> pd.DataFrame:
    rows = [
        {"item": item, "metric": metric, "value": value, "repetition": k, "phase": "measured", **columns}
        for item, repetitions in values.items()
        for k, value in enumerate(repetitions)
    ]
    return pd.DataFrame(rows, columns=["item", "metric", "value", "repetition", "phase", *columns])


def times(scale: float, *, items: int = 12, noise: float = 0.02, seed: int = 0) -> pd.DataFrame:
    random = RANDOM(seed)
    base = RANDOM(99).uniform(0.5, 5, items)  # texts of different length: the pairing removes this
    return frame({f"t{i}": list(scale * base[i] * np.exp(random.normal(0, noise, 3))) for i in range(items)})


@pytest.mark.parametrize(
    ("scale", "verdict"), [(0.5, "better"), (0.9, "better"), (1.0, "same"), (1.01, "same"), (1.2, "worse")]
)
def test_a_known_speed_change_gets_its_word(scale: float, verdict: str) -> None:
    found = ratio(times(scale, seed=1), times(1.0, seed=2), "latency_s")
    assert found.verdict == verdict
    assert found.low is not None and found.high is not None
    assert found.low <= scale * 1.02 and found.high >= scale * 0.98
    assert found.value == pytest.approx(scale, rel=0.03)
    assert found.improvement == pytest.approx(1 / found.value)
    assert found.words() == f"{found.value:.2f}x"


def test_a_large_but_uncertain_ratio_carries_a_tilde() -> None:
    found = ratio(times(3.0, items=4, noise=1.5, seed=3), times(1.0, items=4, noise=1.5, seed=4), "latency_s")
    assert found.verdict == "inconclusive"
    assert found.words().startswith("~")


def test_a_sure_but_tiny_change_is_the_same() -> None:
    found = ratio(times(1.01, noise=1e-4, seed=5), times(1.0, noise=1e-4, seed=6), "latency_s")
    assert found.p is not None and found.p < 0.001
    assert found.verdict == "same"


@pytest.mark.parametrize("test", ["t", "sign-flip"])
def test_identical_recipes_rarely_alarm(test: str) -> None:
    """300 A/A experiments, margin near zero so that only significance guards: nominal 5 % alarms."""
    rule = Rule(1e-9, "lower", test=test)  # type: ignore[arg-type]
    random = RANDOM(7)
    words = [rule.verdict(random.standard_t(4, 10) * 0.05, 1e-9) for _ in range(300)]
    assert words.count("worse") + words.count("better") <= 0.09 * 300


def test_a_real_slow_down_is_found() -> None:
    """+10 % at 5 % noise over 12 items: found nearly always, never called better or the same."""
    rule = Rule(0.05, "lower")
    random = RANDOM(8)
    words = [rule.verdict(random.normal(np.log(1.1), 0.05, 12), np.log1p(0.05)) for _ in range(200)]
    assert words.count("worse") >= 190
    assert set(words) <= {"worse", "inconclusive"}


@settings(max_examples=40)
@given(st.floats(0.2, 5), st.integers(3, 12), st.integers(0, 99))
def test_swapping_the_sides_inverts_the_ratio_and_the_verdict(scale: float, items: int, seed: int) -> None:
    one, other = times(scale, items=items, seed=seed), times(1.0, items=items, seed=seed + 1)
    there, back = ratio(one, other, "latency_s"), ratio(other, one, "latency_s")
    assert there.value is not None and back.value is not None
    assert there.value * back.value == pytest.approx(1)
    opposite = {"better": "worse", "worse": "better"}
    assert back.verdict == opposite.get(there.verdict, there.verdict)


def scores(values: list[float | None], metric: str = "dnsmos_p808") -> pd.DataFrame:
    return frame({f"t{i}": [np.nan if v is None else v] for i, v in enumerate(values)}, metric)


def test_differences_are_in_the_metrics_own_unit_and_direction() -> None:
    base = scores([3.0, 3.2, 3.4, 3.6])
    drop = difference(scores([2.5, 2.71, 2.89, 3.1]), base, "dnsmos_p808", margin=0.2)
    assert drop.verdict == "worse"
    assert drop.value == pytest.approx(-0.5, abs=0.01)
    assert drop.words() == "-0.5"
    assert drop.improvement is None
    rise = difference(scores([0.9, 0.8, 0.91], "wer"), scores([0.1, 0.0, 0.1], "wer"), "wer", margin=0.05)
    assert rise.verdict == "worse"


def test_missing_scores_are_left_out_and_named_never_zero() -> None:
    found = difference(
        scores([3.0, None, 3.4, 3.6, 3.3]), scores([3.0, 3.2, 3.4, 3.6, None]), "dnsmos_p808", margin=0.1
    )
    assert found.n == 3
    assert found.value == 0.0
    assert len(found.reasons) == 2 and "1 items have no dnsmos_p808 in the candidate" in found.reasons[0]


def test_nothing_in_common_is_not_comparable() -> None:
    found = ratio(times(1), frame({"other": [1.0]}), "latency_s")
    assert found.verdict == "not comparable"
    assert found.value is None
    assert found.words() == "—"
    assert found.reasons


def test_two_items_give_a_value_but_no_verdict() -> None:
    found = ratio(times(2, items=2), times(1, items=2), "latency_s")
    assert found.verdict == "inconclusive"
    assert "3 are the minimum" in found.reasons[-1]


def test_zero_times_have_no_ratio() -> None:
    one = frame({"a": [0.0], "b": [1.0], "c": [1.0], "d": [1.0]})
    found = ratio(one, one, "latency_s")
    assert found.n == 3
    assert "at or below zero" in found.reasons[0]


def test_unlike_scenarios_and_mixed_runs_are_refused() -> None:
    one = frame({"a": [1.0]}, scenario="replay", run_id="r1")
    other = frame({"a": [1.0]}, scenario="single", run_id="r2")
    assert ratio(one, other, "latency_s").reasons == ("the scenario differs: replay and single",)
    with pytest.raises(UserError, match="mixes 2 runs"):
        ratio(pd.concat([one, other]), one, "latency_s")
    with pytest.raises(UserError, match="no column item"):
        ratio(one.drop(columns="item"), one, "latency_s")


def test_warm_ups_never_enter() -> None:
    cold = frame({f"t{i}": [9.0] for i in range(4)}).assign(phase="warmup")
    steady = frame({f"t{i}": [1.0] for i in range(4)})
    assert ratio(pd.concat([cold, steady]), steady, "latency_s").value == 1.0


def test_a_neutral_metric_changes_without_being_better() -> None:
    moved = ratio(
        frame({c: [2.0] for c in "abc"}, "steps"), frame({c: [1.0] for c in "abc"}, "steps"), "steps"
    )
    assert moved.verdict == "changed"
    assert moved.improvement is None


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("latency_s", "lower"),
        ("rtf_p50", "lower"),
        ("steps_per_s", "higher"),
        ("dnsmos_p808_mean", "higher"),
        ("wer", "lower"),
        ("valid", "higher"),
        ("no_such_metric", "neither"),
    ],
)
def test_directions(metric: str, direction: str) -> None:
    assert better_direction(metric) == direction


@pytest.mark.parametrize(("margin", "confidence"), [(0.0, 0.95), (-1, 0.95), (0.1, 1.0), (0.1, 0.0)])
def test_impossible_rules_are_refused(margin: float, confidence: float) -> None:
    with pytest.raises(UserError, match=r"must"):
        Rule(margin, "lower", confidence)
