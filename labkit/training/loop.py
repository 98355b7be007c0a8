"""The training loop that every stage shares: schedule, seeded steps, checkpoints with optimizer state, log, resume.

Knows nothing of what is trained. Each step seeds torch and hands the stage a `random.Random` of its own, both from
(seed, step): a run that was killed and resumed from its last checkpoint takes the very steps it would have taken.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

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

    def rate(self, step: int) -> float:
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return self.peak * min(1.0, (step + 1) / self.warmup) * (cosine * (1 - self.floor) + self.floor)


@dataclass(frozen=True)
class Pace:
    """How often the loop speaks and saves."""

    log_steps: int = 50
    validate_steps: int = 200
    save_s: float = 120.0


class Log:
    """One JSON line per block of steps, and one short line for the reader."""

    def __init__(self, path: Path, name: str, say: Callable[[str], None]) -> None:
        self._path, self._name, self._say = path, name, say

    def write(self, record: dict) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")
        shown = " ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in record.items())
        self._say(f"{self._name}: {shown}")


def weight_groups(modules: nn.ModuleDict, weight_decay: float) -> list[dict]:
    """Matrices decay; embeddings, norms, biases and scales do not."""
    decayed, free = [], []
    for name, parameter in modules.named_parameters():
        (decayed if parameter.dim() >= 2 and "embedding" not in name else free).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": free, "weight_decay": 0.0}]


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
    pace: Pace = Pace(),
    say: Callable[[str], None] = print,
) -> None:
    """Train `modules` in place for `schedule.steps`; the last checkpoint is `folder/last.pt`.

    `step_function(step, rng)` returns the loss and figures to log. With `resume`, continues from `last.pt` if it is
    there; without, starts over. Raises FloatingPointError when the loss stops being finite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "last.pt"
    optimizer = torch.optim.AdamW(
        weight_groups(modules, schedule.weight_decay), lr=schedule.peak, betas=schedule.betas
    )
    start, spent = 0, 0.0
    if resume and checkpoint.exists():
        start, spent = load_checkpoint(checkpoint, modules, optimizer)
    elif checkpoint.exists():
        (folder / "log.jsonl").unlink(missing_ok=True)
    log = Log(folder / "log.jsonl", name, say)
    began = saved = time.monotonic()
    sums: Metrics = {}
    modules.train()
    for step in range(start, schedule.steps):
        torch.manual_seed(seed * 1_000_003 + step)
        for group in optimizer.param_groups:
            group["lr"] = schedule.rate(step)
        loss, figures = step_function(step, random.Random(seed * 1_000_003 + step))
        if not math.isfinite(loss.item()):
            raise FloatingPointError(
                f"{name}: the loss is {loss.item()} at step {step}; lower the learning rate"
            )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(modules.parameters(), schedule.clip)
        optimizer.step()
        for key, value in figures.items():
            sums[key] = sums.get(key, 0.0) + value
        done, last = step + 1, step + 1 == schedule.steps
        elapsed = spent + time.monotonic() - began
        if done % pace.log_steps == 0 or last:
            block = (done - start) % pace.log_steps or pace.log_steps
            record = {
                "step": done,
                "wall_s": round(elapsed, 1),
                **{k: round(v / block, 5) for k, v in sums.items()},
            }
            if done % pace.validate_steps == 0 or last:
                modules.eval()
                with torch.no_grad():
                    record |= {f"valid_{k}": round(v, 5) for k, v in validate().items()}
                modules.train()
            log.write(record)
            sums = {}
        if time.monotonic() - saved > pace.save_s or last:
            save_checkpoint(checkpoint, modules, optimizer, done, elapsed)
            saved = time.monotonic()
    modules.eval()


def save_checkpoint(
    path: Path, modules: nn.ModuleDict, optimizer: torch.optim.Optimizer, step: int, wall_s: float
):
    scratch = path.with_suffix(".tmp")
    state = {
        "step": step,
        "wall_s": wall_s,
        "modules": modules.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(state, scratch)
    scratch.replace(path)


def load_checkpoint(
    path: Path, modules: nn.ModuleDict, optimizer: torch.optim.Optimizer
) -> tuple[int, float]:
    state = torch.load(path, weights_only=True)
    modules.load_state_dict(state["modules"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["wall_s"]


def load_module(path: Path, key: str, module: nn.Module) -> nn.Module:
    """The weights that a finished (or interrupted) stage left under `key`, in evaluation mode."""
    state = torch.load(path, weights_only=True)["modules"]
    prefix = f"{key}."
    module.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    return module.eval()
