from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labkit.bench import race as bench
from labkit.bench.race import Course, Lane, race
from labkit.errors import LabError, UnavailableError

NAMES = ("network_cpu_s", "network_wall_s", "step_cpu_s", "step_wall_s")


class FakeArm:
    """Takes steps of a fixed time; `log` remembers who took steps in which order."""

    def __init__(self, name: str, seconds: float, log: list[str]) -> None:
        self.name, self.seconds, self.log = name, seconds, log
        self.closed, self.breaks_after = False, 10**9

    def load(self) -> dict[str, Any]:
        return {"load_s": 1.0, "step_weights_bytes": 1000, "kv_row_position_bytes": 1, "rss_peak_bytes": 5}

    def ready(self, length: int, takes: int) -> dict[str, Any]:
        return {"started_at": length, "room": takes}

    def take(self, count: int) -> bench.Times:
        if self.log.count(self.name) >= self.breaks_after:
            raise LabError("it died")
        self.log.append(self.name)
        return {name: [self.seconds] * count for name in NAMES}

    def peak_rss_bytes(self) -> int:
        return 7

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeArm]:
    log: list[str] = []
    monkeypatch.setattr(bench, "measure_roofs", lambda lanes, reads, tell: dict.fromkeys(reads, 10_000.0))
    return {name: FakeArm(name, s, log) for name, s in (("upstream", 0.9), ("fast", 0.3), ("slow", 1.8))}


def run(arms: dict[str, FakeArm], *names: str, **changes: Any) -> dict[str, Any]:
    lanes = [Lane(name, lambda name=name: arms[name], "upstream", (0,)) for name in names]
    options: dict[str, Any] = {"length": 300, "takes": 4, "rounds": 6, **changes}
    return race(lanes, Course(**options), lambda line: None)


def test_speedups_are_against_the_base_round_by_round(arms: dict[str, FakeArm]) -> None:
    rows = run(arms, "upstream", "fast", "slow")
    assert rows["fast"]["speedup"]["value"] == pytest.approx(3.0)
    assert rows["slow"]["speedup"]["value"] == pytest.approx(0.5)
    assert rows["upstream"]["speedup"] == {"value": pytest.approx(1.0), "low": 1.0, "high": 1.0, "rounds": 6}
    assert rows["fast"]["rss_run_peak_bytes"] == 7 and len(rows["fast"]["rounds"]) == 6
    assert all(arm.closed for arm in arms.values())


def test_the_order_turns_from_round_to_round(arms: dict[str, FakeArm]) -> None:
    run(arms, "upstream", "fast", "slow", rounds=3)
    rounds = arms["fast"].log[3:]  # after the warm-ups
    assert [rounds[0], rounds[3], rounds[6]] == ["upstream", "fast", "slow"]
    assert sorted(rounds[:3]) == sorted(rounds[3:6]) == sorted(rounds[6:])


def test_the_mean_length_is_the_one_asked_for(arms: dict[str, FakeArm]) -> None:
    row = run(arms, "fast", rounds=10, takes=8)["fast"]
    assert (row["started_at"], row["room"]) == (300 - 40, 88)
    assert run(arms, "fast", grows=False)["fast"]["started_at"] == 300


def test_roofline_is_bytes_over_time_over_speed(arms: dict[str, FakeArm]) -> None:
    row = run(arms, "fast")["fast"]
    assert row["step_read_bytes"] == 1300
    assert row["roofline_share"] == pytest.approx(1300 / 0.3 / 10_000)


def test_without_the_base_there_is_no_speedup(arms: dict[str, FakeArm]) -> None:
    assert "speedup" not in run(arms, "fast")["fast"]


def test_an_arm_that_cannot_run_is_a_row_that_says_why(arms: dict[str, FakeArm]) -> None:
    def missing() -> FakeArm:
        raise UnavailableError("its environment is missing.", "Run scripts/make_upstream_env.")

    lanes = [
        Lane("upstream", missing, "upstream", (0,)),
        Lane("fast", lambda: arms["fast"], "upstream", (0,)),
    ]
    rows = race(lanes, Course(300, 4, 6), lambda line: None)
    assert rows["upstream"] == {
        "status": "unavailable",
        "reason": "its environment is missing. Run scripts/make_upstream_env.",
    }
    assert rows["fast"]["network_cpu_s"] == 0.3


def test_an_arm_that_fails_while_loading_is_closed(arms: dict[str, FakeArm], monkeypatch) -> None:
    def broken() -> dict:
        raise LabError("no such file")

    monkeypatch.setattr(arms["slow"], "load", broken)
    assert run(arms, "slow", "fast")["slow"] == {"status": "failed", "reason": "no such file"}
    assert arms["slow"].closed


def test_an_arm_that_dies_on_the_way_costs_its_own_row_alone(arms: dict[str, FakeArm]) -> None:
    arms["slow"].breaks_after = 3
    rows = run(arms, "upstream", "slow", "fast")
    assert rows["slow"] == {"status": "failed", "reason": "it died"}
    assert rows["fast"]["speedup"]["rounds"] == 6
    assert list(rows) == ["upstream", "slow", "fast"]


def test_without_a_base_that_lived_there_are_times_and_no_ratio(arms: dict[str, FakeArm]) -> None:
    arms["upstream"].breaks_after = 2
    row = run(arms, "upstream", "fast")["fast"]
    assert row["network_cpu_s"] == 0.3 and "speedup" not in row


def test_an_interval_covers_the_true_ratio_of_noisy_rounds() -> None:
    random = np.random.default_rng(0)
    base = [{"network_cpu_s": [0.09 * noise]} for noise in random.lognormal(0, 0.05, 12)]
    arm = [{"network_cpu_s": [0.03 * noise]} for noise in random.lognormal(0, 0.05, 12)]
    found = bench.speedup(arm, base, "network_cpu_s")
    assert found["low"] < 3.0 < found["high"] and found["high"] / found["low"] < 1.2
