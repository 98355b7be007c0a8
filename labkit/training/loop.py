"""The training loop that every stage shares: schedule, seeded steps, checkpoints with optimizer state, log, resume.

Knows nothing of what is trained. Each step seeds torch and hands the stage a `random.Random` of its own, both from
(seed, step): a run that was killed and resumed from its last checkpoint takes the very steps it would have taken.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Required, TypedDict, TypeVar

import torch
from torch import Tensor, nn

from labkit.training.optimizer import StageOptimizer

M = TypeVar("M", bound=nn.Module)
Metrics = dict[str, float]
StepFunction = Callable[[int, random.Random], tuple[Tensor, Metrics]]


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up, then a cosine from `peak` down to `floor * peak` at `steps`."""

    steps: int
    peak: float
    warmup: int = 100
    floor: float = 0.02
    clip: float = 1.0
    betas: tuple[float, float] = (0.8, 0.99)
    weight_decay: float = 0.0
    muon: bool = False  # for the matrices of a network's layers

    def rate(self, step: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.peak * min(1.0, (step + 1) / self.warmup) * (cosine * (1 - self.floor) + self.floor)


class Stateful(Protocol):
    """Anything whose state belongs into a checkpoint beside the trained modules."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...


@dataclass(frozen=True)
class Pace:
    """How often the loop speaks and saves."""

    log_steps: int = 50
    validate_steps: int = 200
    save_s: float = 120.0


class Running(TypedDict, total=False):
    """How a stage is driven, passed on to `train`: the same for all stages, and no part of what is learned."""

    resume: Required[bool]
    pace: Pace
    say: Callable[[str], None]


class Log:
    """One JSON line per block of steps, and one short line for the reader.

    Lines of steps after `keep_until` come from a run that was killed before its next checkpoint: they are dropped.
    """

    def __init__(self, path: Path, name: str, say: Callable[[str], None], keep_until: int) -> None:
        self._path, self._name, self._say = path, name, say
        old = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        path.write_text(
            "".join(line for line in old if json.loads(line)["step"] <= keep_until), encoding="utf-8"
        )

    def write(self, record: dict) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        shown = " ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items())
        self._say(f"{self._name}: {shown}")


def train(
    name: str,
    folder: Path,
    modules: nn.ModuleDict,
    schedule: Schedule,
    step_function: StepFunction,
    validate: Callable[[], Metrics],
    *,
    seed: int,
    resume: bool,
    companions: Mapping[str, Stateful] | None = None,
    pace: Pace = Pace(),
    say: Callable[[str], None] = print,
) -> None:
    """Train `modules` in place for `schedule.steps`; the last checkpoint is `folder/last.pt`.

    `step_function(step, rng)` returns the loss and figures to log. With `resume`, continues from `last.pt` if it is
    there; without, starts over. `companions` have state of their own to keep (a discriminator, its optimizer).
    Raises FloatingPointError when the loss stops being finite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "last.pt"
    optimizer = StageOptimizer(
        modules, betas=schedule.betas, weight_decay=schedule.weight_decay, muon=schedule.muon
    )
    keep: dict[str, Stateful] = {"modules": modules, "optimizer": optimizer, **(companions or {})}
    start, spent = 0, 0.0
    if resume and checkpoint.exists():
        start, spent = load_checkpoint(checkpoint, keep)
    log = Log(folder / "log.jsonl", name, say, keep_until=start)
    began = saved = time.monotonic()
    sums: Metrics = {}
    summed = 0
    modules.train()
    for step in range(start, schedule.steps):
        torch.manual_seed(seed * 1_000_003 + step)
        loss, figures = step_function(step, random.Random(seed * 1_000_003 + step))
        if not math.isfinite(loss.item()):
            raise FloatingPointError(
                f"{name}: the loss is {loss.item()} at step {step}; lower the learning rate"
            )
        loss.backward()
        nn.utils.clip_grad_norm_(modules.parameters(), schedule.clip)
        optimizer.step(schedule.rate(step))
        for key, value in figures.items():
            sums[key] = sums.get(key, 0.0) + value
        summed += 1
        done, last = step + 1, step + 1 == schedule.steps
        elapsed = spent + time.monotonic() - began
        if done % pace.log_steps == 0 or last:
            record = {
                "step": done,
                "wall_s": round(elapsed, 1),
                **{k: round(v / summed, 5) for k, v in sums.items()},
            }
            if done % pace.validate_steps == 0 or last:
                modules.eval()
                with torch.no_grad():
                    record |= {f"valid_{k}": round(v, 5) for k, v in validate().items()}
                modules.train()
            log.write(record)
            sums, summed = {}, 0
        if time.monotonic() - saved > pace.save_s or last:
            save_checkpoint(checkpoint, keep, done, elapsed)
            saved = time.monotonic()
    modules.eval()


def save_checkpoint(path: Path, keep: Mapping[str, Stateful], step: int, wall_s: float) -> None:
    """Write the state of everything in `keep`; the file appears whole or not at all."""
    scratch = path.with_suffix(".tmp")
    torch.save(
        {"step": step, "wall_s": wall_s, **{name: kept.state_dict() for name, kept in keep.items()}}, scratch
    )
    scratch.replace(path)


def load_checkpoint(path: Path, keep: Mapping[str, Stateful]) -> tuple[int, float]:
    """Restore what `save_checkpoint` kept and return (steps done, seconds spent)."""
    state = torch.load(path, weights_only=True)
    for name, kept in keep.items():
        kept.load_state_dict(state[name])
    return state["step"], state["wall_s"]


def load_module(path: Path, key: str, module: M) -> M:
    """The weights that a finished (or interrupted) stage left under `key`, in evaluation mode."""
    module.load_state_dict(part(torch.load(path, weights_only=True)["modules"], key))
    return module.eval()


def part(state: Mapping[str, Tensor], key: str) -> dict[str, Tensor]:
    """What a state of several modules holds of the one called `key`."""
    prefix = f"{key}."
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
