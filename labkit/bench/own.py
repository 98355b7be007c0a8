"""`bench self`: the lab's recipes beside upstream on the full-size voice, and the lab's own small costs.

Only ratios within one run mean something: the machine's state is in every number, and in all arms alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from labkit.bench.small import harness_overhead, import_s, say_cold, warm_rtf
from labkit.bench.steps import bench_steps
from labkit.bench.targets import targets
from labkit.errors import LabError, SpecError, UserError
from labkit.spec import default_recipes, find_recipe
from labkit.voices import Voice, resolve_voice

RECIPES = ("upstream", "torch-fp32", "torch-bf16", "ort-fp32", "ort-int8-dynamic")
Figures = dict[str, Any]


def bench_self(
    *,
    rounds: int = 10,
    steps: int = 8,
    context: int = 300,
    recipes: Sequence[str] = RECIPES,
    voice: str = "random",
    small_voice: str | None = "nano",
    core: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Figures:
    """Measure, and return all figures as plain values (JSON): arms, nano, harness, import, targets.

    core: the CPU that every arm is pinned to, the last one when left out. small_voice: the voice of the small
    figures; None leaves them out. Raises the user's errors before any work.
    """
    tell = progress or (lambda line: None)
    if rounds < 2 or steps < 1 or context < 1:
        raise SpecError(
            f"bench: rounds={rounds}, steps={steps}, context={context}; at least 2, 1 and 1 are needed."
        )
    chosen = [find_recipe(name, default_recipes()) for name in recipes]
    pinned = _core(core)
    full = resolve_voice(voice, tell)
    _check_room(full, context, rounds, steps)
    return _with_targets(
        {
            "voice": voice,
            "context": context,
            "steps": steps,
            "rounds": rounds,
            "core": pinned,
            "machine": _machine(),
            "arms": bench_steps(
                chosen, full, core=pinned, context=context, steps=steps, rounds=rounds, tell=tell
            ),
            **_small(small_voice, tell),
        }
    )


def _small(voice: str | None, tell: Callable[[str], None]) -> Figures:
    """Figures on the small voice; one that fails is a reason, and costs no other."""
    figures: Figures = {"nano": {}, "harness": {}, "import_s": import_s()}
    if voice is None:
        return figures
    tell(f"bench: small figures on {voice}")
    nano = figures["nano"]
    try:
        nano |= {name: value for name, value in say_cold(voice).items() if name.startswith("cold_")}
        warm = warm_rtf(voice, find_recipe("torch-fp32", default_recipes()))
        nano |= {f"warm_{name}": value for name, value in warm.items()}
        figures["harness"] = harness_overhead(voice, warm["cpu_s"])
    except LabError as error:
        nano["reason"] = str(error)
    return figures


def _with_targets(figures: Figures) -> Figures:
    return {**figures, "targets": targets(figures)}


def _core(core: int | None) -> int:
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    if core is None:
        return allowed[-1]
    if core not in allowed:
        raise UserError(f"bench: core {core} is not one of this process's cores {allowed}.")
    return core


def _check_room(voice: Voice, context: int, rounds: int, steps: int) -> None:
    needed, positions = context + (rounds + 1) * steps, voice.config.gpt.positions
    if needed > positions:
        raise SpecError(
            f"bench: context {context} and {rounds + 1} rounds of {steps} steps need {needed} positions; voice "
            f"{voice.name!r} has {positions}. Ask for fewer."
        )


def _machine() -> str:
    from labkit.environment import describe_environment, machine_class

    return machine_class(describe_environment())
