"""The shared loop: killed and resumed it ends where an undisturbed run ends, and it refuses to go on without sense."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from labkit.training.loop import Pace, Schedule, load_module, train

SCHEDULE = Schedule(steps=20, peak=1e-2, warmup=5)


class Killed(Exception):
    pass


def fresh() -> nn.ModuleDict:
    torch.manual_seed(0)
    return nn.ModuleDict({"m": nn.Linear(4, 4)})


def run(folder: Path, modules: nn.ModuleDict, *, resume: bool, kill_at: int | None = None) -> None:
    def step(number: int, rng: random.Random) -> tuple[Tensor, dict[str, float]]:
        if number == kill_at:
            raise Killed
        x = torch.randn(3, 4) * rng.random()
        loss = (modules["m"](x) - 1).pow(2).mean()
        return loss, {"loss": loss.item()}

    train(
        "test", folder, modules, SCHEDULE, step, lambda: {"figure": 1.0},
        seed=1, resume=resume, pace=Pace(log_steps=5, validate_steps=10, save_s=0.0), say=lambda _: None,
    )  # fmt: skip


def test_a_killed_run_resumes_to_the_same_weights_and_the_same_log_steps(tmp_path) -> None:
    whole, broken = fresh(), fresh()
    run(tmp_path / "whole", whole, resume=False)
    with pytest.raises(Killed):
        run(tmp_path / "broken", broken, resume=False, kill_at=13)
    resumed = fresh()
    run(tmp_path / "broken", resumed, resume=True)
    assert torch.equal(whole["m"].weight, resumed["m"].weight)
    steps = [
        json.loads(line)["step"] for line in (tmp_path / "broken" / "log.jsonl").read_text().splitlines()
    ]
    assert steps == [5, 10, 15, 20]


def test_without_resume_it_starts_over(tmp_path) -> None:
    run(tmp_path, fresh(), resume=False)
    again = fresh()
    with pytest.raises(Killed):
        run(tmp_path, again, resume=False, kill_at=0)
    assert torch.equal(again["m"].weight, fresh()["m"].weight)


def test_the_checkpoint_gives_back_one_module_by_name(tmp_path) -> None:
    trained = fresh()
    run(tmp_path, trained, resume=False)
    assert torch.equal(load_module(tmp_path / "last.pt", "m", nn.Linear(4, 4)).weight, trained["m"].weight)


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path) -> None:
    modules = fresh()

    def step(number: int, rng: random.Random) -> tuple[Tensor, dict[str, float]]:
        return modules["m"].weight.sum() * float("nan"), {}

    with pytest.raises(FloatingPointError, match="step 0"):
        train("t", tmp_path, modules, SCHEDULE, step, dict, seed=1, resume=False, say=lambda _: None)


def test_the_rate_warms_up_then_falls_to_its_floor() -> None:
    rates = [SCHEDULE.rate(step) for step in range(20)]
    assert rates[0] < rates[3] < max(rates) <= SCHEDULE.peak
    assert rates[-1] < 0.05 * SCHEDULE.peak
