"""From scores to who found what."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.faults import findings
from labkit.faults.findings import alarms, first_failure, judge_condition, movements, plain_rules

ITEMS = [f"s{n}" for n in range(24)]


def near(mean: float, spread: float, seed: int = 0) -> dict[str, float | None]:
    rng = np.random.default_rng(seed)
    return {item: mean + spread * float(rng.standard_normal()) for item in ITEMS}


def test_the_lowest_tier_that_fails_is_named_with_its_worst_metric() -> None:
    base = {
        "tier0": {"valid": dict.fromkeys(ITEMS, 1.0)},
        "tier1": {"kl": dict.fromkeys(ITEMS, 0.0), "hidden_error": dict.fromkeys(ITEMS, 0.0)},
        "tier2": {"log_mel_db": dict.fromkeys(ITEMS, 0.0)},
    }
    same = judge_condition(base, base, None)
    assert first_failure(same) is None and set(same) == {"tier0", "tier1", "tier2"}
    hurt = {
        **base,
        "tier1": {"kl": near(5.0, 0.1), "hidden_error": near(0.5, 0.01)},
        "tier2": {"log_mel_db": near(9, 0.1)},
    }
    tier, verdict = first_failure(judge_condition(base, hurt, None)) or ("", None)
    assert tier == "tier1" and verdict is not None and verdict.metric == "kl"
    hurt["tier0"] = {"valid": {**base["tier0"]["valid"], "s0": 0.0}}
    assert (first_failure(judge_condition(base, hurt, None)) or ("",))[0] == "tier0"


def test_what_is_not_there_is_not_judged() -> None:
    assert judge_condition({"tier2": {}}, {"tier2": {}}, None) == {}
    verdicts = judge_condition(
        {"tier2": {"log_mel_db": near(0, 0)}}, {"tier2": {"log_mel_db": dict.fromkeys(ITEMS)}}, None
    )
    assert verdicts["tier2"]["log_mel_db"].outcome == "not comparable"


def test_other_rules_see_absolute_scores_alone() -> None:
    base = {
        "tier1": {"kl": near(0.01, 0), "nll": near(2, 0.1)},
        "tier2": {"dnsmos_p808": near(3, 0.1), "cer": near(0, 0)},
    }
    head = {
        "tier1": {"kl": near(5, 0), "nll": near(2.5, 0.1)},
        "tier2": {"dnsmos_p808": near(3, 0.1), "cer": near(1, 0)},
    }
    assert alarms(base, head) == {rule: ["nll"] for rule in findings.RULES}
    assert not any(alarms(base, base).values())


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_rules_know_which_way_is_worse(direction: str) -> None:
    low, high = np.full(12, 1.0), np.full(12, 1.5)
    base, worse = (low, high) if direction == "lower" else (high, low)
    assert all(plain_rules(base, worse, direction).values())
    assert not any(plain_rules(worse, base, direction).values())


def test_movements_say_how_many_sentences_would_show_them() -> None:
    moved = movements(
        {"a": near(0, 0), "b": near(1, 0.2), "c": near(1, 0)},
        {"a": near(1, 0.5, 1), "b": near(1, 0.2), "c": dict.fromkeys(ITEMS), "d": near(0, 1)},
    )
    assert set(moved) == {"a", "b"}
    assert moved["a"].change == pytest.approx(1, abs=0.3) and 2 < (moved["a"].n_needed or 0) < 20
    assert moved["b"].change == 0 and moved["b"].n_needed is None and moved["b"].n == 24
