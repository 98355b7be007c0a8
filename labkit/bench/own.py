"""`bench self`: the lab's recipes beside upstream on the full-size voice, and the lab's own small costs.

Only ratios within one run mean something: the machine's state is in every number, and in all arms alike.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from labkit.bench.arms import Tell, step_arm
from labkit.bench.race import Course, Figures, Lane, race
from labkit.bench.small import harness_overhead, import_s, say_cold, warm_rtf
from labkit.bench.targets import targets
from labkit.errors import LabError, SpecError, UserError
from labkit.spec import STAGES, default_recipes, find_recipe
from labkit.voices import Voice, resolve_voice

RECIPES = ("upstream", "torch-fp32", "torch-bf16", "ort-fp32", "ort-int8-dynamic")
BASE = "upstream"


def bench_self(
    *,
    rounds: int = 10,
    steps: int = 8,
    context: int = 300,
    recipes: Sequence[str] = RECIPES,
    voice: str = "random",
    small_voice: str | None = "nano",
    core: int | None = None,
    progress: Tell | None = None,
) -> Figures:
    """Measure, and return all figures as plain values (JSON): arms, nano, harness, import, targets.

    core: the CPU that every arm is pinned to, the last one when left out. small_voice: the voice of the small
    figures; None leaves them out. Raises the user's errors before any work.
    """
    tell = progress or (lambda line: None)
    check_counts(rounds=rounds, steps=steps, context=context)
    chosen = [find_recipe(name, default_recipes()) for name in recipes]
    pinned = pinned_core(core)
    full = resolve_voice(voice, tell)
    check_room(full, context, rounds, steps)
    lanes = [
        Lane(recipe.name, partial(step_arm, recipe, full, (pinned,), tell, STAGES), BASE, (pinned,))
        for recipe in chosen
    ]
    arms = race(lanes, Course(context, steps, rounds), tell)
    return _with_targets(
        {
            "voice": voice,
            "context": context,
            "steps": steps,
            "rounds": rounds,
            "core": pinned,
            "machine": this_machine(),
            "arms": {name: _without_raw(row) for name, row in arms.items()},
            **_small(small_voice, tell),
        }
    )


def _small(voice: str | None, tell: Tell) -> Figures:
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


def _without_raw(row: Figures) -> Figures:
    return {name: value for name, value in row.items() if name != "rounds"}


def check_counts(*, rounds: int, steps: int, context: int) -> None:
    """`SpecError` for a bench that would say nothing."""
    if rounds < 2 or steps < 1 or context < 1:
        raise SpecError(
            f"bench: rounds={rounds}, steps={steps}, context={context}; at least 2, 1 and 1 are needed."
        )


def usable_cores() -> list[int]:
    """The CPUs that this process may run on."""
    return (
        sorted(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else list(range(os.cpu_count() or 1))
    )


def pinned_core(core: int | None) -> int:
    """The CPU that one-threaded arms are pinned to: the last one when none is named."""
    allowed = usable_cores()
    if core is None:
        return allowed[-1]
    if core not in allowed:
        raise UserError(f"bench: core {core} is not one of this process's cores {allowed}.")
    return core


def check_room(voice: Voice, context: int, rounds: int, steps: int) -> None:
    """`SpecError` when the steps would leave the voice's positions."""
    needed, positions = context + (rounds + 1) * steps, voice.config.gpt.positions
    if needed > positions:
        raise SpecError(
            f"bench: context {context} and {rounds + 1} rounds of {steps} steps need {needed} positions; voice "
            f"{voice.name!r} has {positions}. Ask for fewer."
        )


def this_machine() -> str:
    """Its class, in one line."""
    from labkit.environment import describe_environment, machine_class

    return machine_class(describe_environment())
