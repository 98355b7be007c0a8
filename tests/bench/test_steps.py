from __future__ import annotations

from typing import Any, ClassVar

import pytest

from labkit.bench import steps as bench
from labkit.errors import LabError, UnavailableError
from labkit.spec import Recipe

NAMES = ("network_cpu_s", "network_wall_s", "step_cpu_s", "step_wall_s")


class FakeArm:
    """Takes steps of a fixed time; `log` remembers who took steps in which order."""

    log: ClassVar[list[str]] = []

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds, self.closed = name, seconds, False

    def load(self) -> dict[str, Any]:
        return {"load_s": 1.0, "step_weights_bytes": 1000, "kv_row_position_bytes": 1, "rss_peak_bytes": 5}

    def prefill(self, context: int, steps: int) -> dict[str, Any]:
        return {"started_at": context}

    def steps(self, count: int) -> bench.Steps:
        FakeArm.log.append(self.name)
        return {name: [self.seconds] * count for name in NAMES}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeArm]:
    made = {name: FakeArm(name, s) for name, s in (("upstream", 0.9), ("fast", 0.3), ("slow", 1.8))}
    FakeArm.log = []
    monkeypatch.setattr(bench, "open_arm", lambda recipe, voice, core: made[recipe.name])
    monkeypatch.setattr(bench, "measure_roofs", lambda reads, core: dict.fromkeys(reads, 10_000.0))
    return made


def run(*names: str, **changes: Any) -> dict[str, Any]:
    options = {"core": 0, "context": 300, "steps": 4, "rounds": 6, "tell": lambda line: None, **changes}
    return bench.bench_steps([Recipe(name=name) for name in names], None, **options)  # type: ignore[arg-type]


def test_speedups_are_against_upstream_round_by_round(arms: dict[str, FakeArm]) -> None:
    rows = run("upstream", "fast", "slow")
    assert rows["fast"]["speedup"]["value"] == pytest.approx(3.0)
    assert rows["slow"]["speedup"]["value"] == pytest.approx(0.5)
    assert rows["upstream"]["speedup"] == {"value": pytest.approx(1.0), "low": 1.0, "high": 1.0, "rounds": 6}
    assert all(arm.closed for arm in arms.values())


def test_the_order_turns_from_round_to_round(arms: dict[str, FakeArm]) -> None:
    run("upstream", "fast", "slow", rounds=3)
    rounds = FakeArm.log[3:]  # after the warm-ups
    assert [rounds[0], rounds[3], rounds[6]] == ["upstream", "fast", "slow"]
    assert sorted(rounds[:3]) == sorted(rounds[3:6]) == sorted(rounds[6:])


def test_the_mean_context_is_the_one_asked_for(arms: dict[str, FakeArm]) -> None:
    assert run("fast", rounds=10, steps=8)["fast"]["started_at"] == 300 - 40


def test_roofline_is_bytes_over_time_over_speed(arms: dict[str, FakeArm]) -> None:
    row = run("fast")["fast"]
    assert row["step_read_bytes"] == 1300
    assert row["roofline_share"] == pytest.approx(1300 / 0.3 / 10_000)


def test_without_upstream_there_is_no_speedup(arms: dict[str, FakeArm]) -> None:
    assert "speedup" not in run("fast")["fast"]


def test_an_arm_that_cannot_run_is_a_row_that_says_why(arms: dict[str, FakeArm], monkeypatch) -> None:
    def opened(recipe: Recipe, voice: object, core: int) -> FakeArm:
        if recipe.name == "upstream":
            raise UnavailableError("its environment is missing.", "Run scripts/make_upstream_env.")
        return arms[recipe.name]

    monkeypatch.setattr(bench, "open_arm", opened)
    rows = run("upstream", "fast")
    assert rows["upstream"] == {"reason": "its environment is missing. Run scripts/make_upstream_env."}
    assert rows["fast"]["network_cpu_s"] == 0.3


def test_an_arm_that_fails_while_loading_is_closed(arms: dict[str, FakeArm], monkeypatch) -> None:
    def broken() -> dict:
        raise LabError("no such file")

    monkeypatch.setattr(arms["slow"], "load", broken)
    assert run("slow", "fast")["slow"] == {"reason": "no such file"}
    assert arms["slow"].closed


def test_an_interval_covers_the_true_ratio_of_noisy_rounds() -> None:
    import numpy as np

    random = np.random.default_rng(0)
    base = [{"network_cpu_s": [0.09 * noise]} for noise in random.lognormal(0, 0.05, 12)]
    arm = [{"network_cpu_s": [0.03 * noise]} for noise in random.lognormal(0, 0.05, 12)]
    found = bench.speedup(arm, base, "network_cpu_s")
    assert found["low"] < 3.0 < found["high"] and found["high"] / found["low"] < 1.2
