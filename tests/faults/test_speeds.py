"""Experiments on timed processes: what is large is found, what is not there is not, and the same twice."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.faults.speeds import SLOW_DOWNS, draw_timings, find_speed, judge_memory
from labkit.faults.timing import Timed


def processes(count: int, spread: float = 0.01, slow: float = 1.0, peak: float = 100.0) -> list[Timed]:
    rng = np.random.default_rng(5)
    medians = slow * (1 + spread * rng.standard_normal(count))
    return [
        Timed((each + spread * rng.standard_normal(5)).tolist(), each, 50 * each, 0.99, peak)
        for each in medians
    ]


def test_a_large_slow_down_is_found_and_none_is_not() -> None:
    base = processes(15)
    none, large = (draw_timings(base, 50, None, slow_down=share) for share in (0.0, 0.15))
    assert none.ours == {"fail": 0, "pass": 1, "inconclusive": 0} and none.same_processes["mean > 10 %"] == 0
    assert large.ours["fail"] == 1 and large.same_processes["median > 5 %"] == 1
    assert draw_timings(base, 50, None, slowed=processes(5, slow=1.15)).ours["fail"] == 1


def test_the_same_draws_every_time() -> None:
    base = processes(15, spread=0.05)
    once, again = (draw_timings(base, 30, None, slow_down=0.05) for _ in "12")
    assert once == again and 0 < once.ours["inconclusive"] <= 1


def test_a_recipe_is_told_about_with_its_spread_and_what_the_busy_loop_cost() -> None:
    found = find_speed(processes(15), processes(5, slow=1.15), 20, None)
    assert [each.slow_down for each in found.scaled] == list(SLOW_DOWNS)
    assert found.really_slowed is not None and found.slowed_by == pytest.approx(0.15, abs=0.02)
    assert found.spread == pytest.approx(found.spread_of_seconds) == pytest.approx(0.01, abs=0.005)
    assert found.core_share == 0.99


def test_too_few_processes_have_no_rates() -> None:
    found = find_speed(processes(3), processes(1, slow=1.15), 20, None)
    assert found.scaled == [] and found.really_slowed is None and found.slowed_by is not None
    assert find_speed(processes(1), [], 20, None).spread is None


@pytest.mark.parametrize(("peak", "outcome"), [(120.0, "fail"), (102.0, "pass")])
def test_memory_has_a_plain_margin(peak: float, outcome: str) -> None:
    assert judge_memory(processes(3), processes(1, peak=peak), None).outcome == outcome
