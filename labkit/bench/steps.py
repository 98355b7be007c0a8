"""Interleaved decode steps of several arms on one core, and what they say.

In each round every arm takes the same number of steps, one arm after the other, in an order that turns from round
to round: a disturbance of seconds falls on neighbours alike. Ratios are taken round by round from CPU time of the
network alone, and their interval is a bootstrap over rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from labkit.bench.arms import Arm, Steps, WorkerProcess, open_arm
from labkit.errors import LabError, UnavailableError
from labkit.measure.roofline import roofline_share, step_bytes
from labkit.spec import Recipe
from labkit.voices import Voice

Figures = dict[str, Any]
CONFIDENCE = 0.95
_BASE = "upstream"
_TIMES = ("network_cpu_s", "network_wall_s", "step_cpu_s", "step_wall_s")


def bench_steps(
    recipes: Sequence[Recipe],
    voice: Voice,
    *,
    core: int,
    context: int,
    steps: int,
    rounds: int,
    tell: Callable[[str], None],
) -> Figures:
    """Load every arm, take the rounds, and return figures by arm, with the memory's reading speed beside them.

    The context grows by a step a step; it starts half the run's steps below `context`, so that this is its mean.
    """
    start = max(1, context - rounds * steps // 2)
    rows: dict[str, Figures] = {}
    arms: dict[str, Arm] = {}
    taken: dict[str, list[Steps]] = {}
    try:
        for recipe in recipes:
            tell(f"bench: loading {recipe.name}")
            try:
                arms[recipe.name] = arm = open_arm(recipe, voice, core)
                rows[recipe.name] = arm.load() | arm.prefill(start, (rounds + 1) * steps)
                arm.steps(steps)  # a warm-up that no figure sees
                taken[recipe.name] = []
            except LabError as error:
                rows[recipe.name] = {"reason": _words(error)}
                if recipe.name in arms:
                    arms.pop(recipe.name).close()
        for number in range(rounds):
            tell(f"bench: round {number + 1} of {rounds}")
            for name in _turned(list(taken), number):
                taken[name].append(arms[name].steps(steps))
    finally:
        for arm in arms.values():
            arm.close()
    reads = {name: _read_bytes(rows[name], context) for name in taken}
    tell("bench: reading speed of the memory")
    roofs = measure_roofs(reads, core)
    for name, per_round in taken.items():
        rows[name] |= arm_figures(per_round, taken.get(_BASE), reads[name], roofs.get(name))
    return rows


def measure_roofs(reads: Mapping[str, int | None], core: int) -> dict[str, float]:
    """Reading speed at the size that each arm's step reads, in a process of its own on the same core."""
    with WorkerProcess(core) as probe:
        speeds = {
            size: probe.call("bandwidth", buffer_bytes=size)["bytes_per_s"]
            for size in set(reads.values())
            if size
        }
    return {name: speeds[size] for name, size in reads.items() if size}


def arm_figures(
    per_round: Sequence[Steps], base: Sequence[Steps] | None, read: int | None, bytes_per_s: float | None
) -> Figures:
    """Times (median and least of all steps, in seconds), ratio to upstream with its interval, roofline share.

    `speedup` is upstream's time over this arm's, above 1 is faster.
    """
    figures: Figures = {}
    for name in _TIMES:
        values = [seconds for steps in per_round for seconds in steps[name]]
        figures |= {f"{name}": median(values), f"{name[:-2]}_min_s": min(values)}
    share = roofline_share(read, figures["network_cpu_s"], bytes_per_s)
    figures |= {
        "step_read_bytes": read,
        "bandwidth_bytes_per_s": bytes_per_s,
        "roofline_share": share.share,
        "roofline_impossible": share.impossible,
    }
    if base is not None:
        figures["speedup"] = speedup(per_round, base, "network_cpu_s")
        figures["speedup_with_draw"] = speedup(per_round, base, "step_cpu_s")
    return figures


def speedup(arm: Sequence[Steps], base: Sequence[Steps], name: str) -> Figures:
    """Geometric mean over rounds of base / arm, each round by its median step, with a bootstrap interval."""
    from labkit.compare.statistics import bootstrap_interval

    logs = np.log([median(b[name]) / median(a[name]) for a, b in zip(arm, base, strict=True)])
    if len(logs) < 2 or np.allclose(logs, logs[0]):
        point = float(np.exp(logs.mean()))
        return {"value": point, "low": point, "high": point, "rounds": len(logs)}
    low, high = bootstrap_interval(logs, CONFIDENCE)
    return {
        "value": float(np.exp(logs.mean())),
        "low": float(np.exp(low)),
        "high": float(np.exp(high)),
        "rounds": len(logs),
    }


def _read_bytes(row: Figures, context: int) -> int | None:
    weights, position = row.get("step_weights_bytes"), row.get("kv_row_position_bytes")
    return None if weights is None or position is None else step_bytes(weights, position, context)


def _turned(names: list[str], by: int) -> list[str]:
    by %= max(1, len(names))
    return names[by:] + names[:by]


def _words(error: LabError) -> str:
    return f"{error.reason} {error.remedy}" if isinstance(error, UnavailableError) else str(error)
