"""Verdicts about time and memory: known slow-downs, quiet and busy machines, too few processes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from labkit.compare import Margin, load_margins, memory_verdict, process_medians, speed_verdict
from labkit.errors import UserError

RANDOM = np.random.default_rng
CPU = Margin("cpu_s", "speed", "lower", warn=0.03, fail=0.05, minimum=5)
RATE = Margin("steps_per_s", "speed", "higher", warn=0.03, fail=0.05, minimum=5)
PEAK = Margin("rss_peak_bytes", "memory", "lower", warn=0.05, fail=0.10, minimum=1)


def processes(count: int, *, slower: float = 1.0, noise: float = 0.01, seed: int = 0) -> list[float]:
    return list(2.0 * slower * np.exp(RANDOM(seed).normal(0, noise, count)))


@pytest.mark.parametrize(
    ("slower", "outcome", "warned", "improved"),
    [(1.0, "pass", False, False), (1.15, "fail", True, False), (0.8, "pass", False, True)],
)
def test_a_known_slow_down_gets_its_word(slower: float, outcome: str, warned: bool, improved: bool) -> None:
    base, head = processes(10, seed=1), processes(5, slower=slower, seed=2)
    found = speed_verdict(base, head, CPU)
    assert (found.outcome, found.warned, found.improved) == (outcome, warned, improved)
    assert found.change == pytest.approx(slower - 1, abs=0.02)
    assert (found.n, found.n_needed) == (5, 5)
    rates = speed_verdict([1 / each for each in base], [1 / each for each in head], RATE)
    assert (rates.outcome, rates.warned, rates.improved) == (outcome, warned, improved)
    assert rates.p == pytest.approx(found.p)
    assert rates.change == pytest.approx(1 / (1 + found.change) - 1)  # type: ignore[operator]


def outcomes(slower: float, noise: float, count: int = 400) -> dict[str, float]:
    found = [
        speed_verdict(
            processes(10, noise=noise, seed=seed),
            processes(5, slower=slower, noise=noise, seed=10_000 + seed),
            CPU,
        ).outcome
        for seed in range(count)
    ]
    return {outcome: found.count(outcome) / count for outcome in ("pass", "fail", "inconclusive")}  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.10])
def test_equal_speed_hardly_ever_fails_however_noisy_the_machine(noise: float) -> None:
    found = outcomes(1.0, noise)
    assert found["fail"] <= 0.02  # nominally at most 1 %
    assert found["pass"] >= {0.01: 0.99, 0.03: 0.45, 0.10: 0.0}[noise]


@pytest.mark.parametrize(
    ("slower", "noise", "least"), [(1.15, 0.03, 0.99), (1.15, 0.05, 0.95), (1.10, 0.02, 0.99)]
)
def test_slow_downs_are_found_with_five_processes(slower: float, noise: float, least: float) -> None:
    found = outcomes(slower, noise)
    assert found["fail"] >= least and found["pass"] == 0


def test_the_processes_that_it_asks_for_decide() -> None:
    """Undecided at 5 and 10 processes on a noisy machine: repeated with the asked number, most pass."""
    passed = []
    for seed in range(150):
        first = speed_verdict(
            processes(10, noise=0.03, seed=seed), processes(5, noise=0.03, seed=999 - seed), CPU
        )
        if first.outcome == "inconclusive" and first.n_needed is not None and first.n_needed <= 60:
            base = processes(2 * first.n_needed, noise=0.03, seed=5_000 + seed)
            head = processes(first.n_needed, noise=0.03, seed=9_000 + seed)
            passed.append(speed_verdict(base, head, CPU).outcome == "pass")
    assert len(passed) > 30
    assert np.mean(passed) >= 0.8


def test_the_wall_clock_gates_on_a_quiet_machine_only() -> None:
    rule = load_margins(family="speed")["latency_s"]
    base, head = processes(10, seed=1), processes(5, slower=1.5, seed=2)
    busy, quiet = (speed_verdict(base, head, rule, quiet_machine=each) for each in (False, True))
    assert (busy.outcome, busy.gates) == ("fail", False)
    assert "not declared quiet" in busy.reasons[-1]
    assert (quiet.outcome, quiet.gates) == ("fail", True)


@pytest.mark.parametrize(("m", "n"), [(9, 5), (10, 4), (1, 1)])
def test_too_few_processes_carry_no_verdict(m: int, n: int) -> None:
    found = speed_verdict(processes(m), processes(n, slower=3), CPU)
    assert (found.outcome, found.change, found.p) == ("inconclusive", None, None)
    assert f"{n} head and {m} base processes; 5 and 10 are the minimum" in found.reasons[-1]


@pytest.mark.parametrize("judge", [speed_verdict, memory_verdict])
def test_a_side_without_numbers_is_not_comparable(judge: object) -> None:
    rule = CPU if judge is speed_verdict else PEAK
    for base, head, side in (([], processes(5), "base"), (processes(10), [None, float("nan"), 0.0], "head")):
        found = judge(base, head, rule)  # type: ignore[operator]
        assert (found.outcome, found.change) == ("not comparable", None)
        assert f"no process of the {side} has {rule.metric} above 0" in found.reasons


def test_missing_processes_are_said() -> None:
    found = speed_verdict(processes(10), [*processes(5, seed=1), None], CPU)
    assert (found.outcome, found.n) == ("pass", 5)
    assert found.reasons == ("1 processes of the head have no cpu_s above 0",)


@pytest.mark.parametrize(
    ("grown", "outcome", "warned", "improved"),
    [
        (1.0, "pass", False, False),
        (1.07, "pass", True, False),
        (1.2, "fail", True, False),
        (0.5, "pass", False, True),
    ],
)
def test_memory_has_a_plain_margin(grown: float, outcome: str, warned: bool, improved: bool) -> None:
    found = memory_verdict({"a": 1e8, "b": 1.01e8, "c": 9e8}, {"d": grown * 1.01e8}, PEAK)
    assert (found.outcome, found.warned, found.improved) == (outcome, warned, improved)
    assert found.change == pytest.approx(grown - 1)


def test_a_minimum_holds_for_memory_too() -> None:
    rule = Margin("rss_peak_bytes", "memory", "lower", 0.05, 0.1, 3)
    found = memory_verdict([1.0, 1.0, 1.0], [2.0, 2.0], rule)
    assert (found.outcome, found.change, found.n_needed) == ("inconclusive", None, 3)


def test_a_process_is_one_number() -> None:
    rows = [
        {"run_id": run, "item": item, "metric": metric, "phase": phase, "repetition": k, "value": value}
        for run, item, metric, phase, values in (
            ("a", "x", "cpu_s", "measured", [1.0, 9.0, 2.0]),
            ("a", "y", "cpu_s", "measured", [5.0]),
            ("a", "y", "latency_s", "measured", [50.0]),
            ("b", "x", "cpu_s", "warmup", [100.0]),
            ("b", "x", "cpu_s", "measured", [3.0, 3.0]),
            ("b", "y", "cpu_s", "measured", [4.0]),
            ("half", "x", "cpu_s", "measured", [1.0]),
        )
        for k, value in enumerate(values)
    ]
    assert process_medians(pd.DataFrame(rows), "cpu_s") == {"a": 7.0, "b": 7.0}
    assert process_medians(pd.DataFrame(rows), "vocoder_s") == {}


def test_another_kind_of_margin_is_refused() -> None:
    with pytest.raises(UserError, match="'rss_peak_bytes' is about memory, not about speed"):
        speed_verdict([], [], PEAK)
    with pytest.raises(UserError, match="'cpu_s' is about speed, not about memory"):
        memory_verdict([], [], CPU)
    with pytest.raises(UserError, match="confidence 1"):
        speed_verdict([], [], CPU, 1)
