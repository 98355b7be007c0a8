"""The gate itself: check that the baseline fits, measure what is missing, compare, and say how it ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from labkit.compare.outcome import INCONCLUSIVE, PASSED, overall
from labkit.environment import describe_environment, machine_class
from labkit.errors import UserError
from labkit.gate.baseline import Baseline, Costs, misfits
from labkit.gate.comparing import compare_arm, compare_costs, compare_recipe, heed_arm
from labkit.gate.listening import Ear
from labkit.gate.measuring import choose_recipes, measure, measure_costs
from labkit.gate.probing import Tell
from labkit.gate.spec import GateSpec
from labkit.report.gate_result import GateResult, Line
from labkit.results.store import Store
from labkit.spec import Recipe


class NotComparableError(UserError):
    """A baseline of another voice, corpus or set-up: nothing that could be measured would mean anything."""


def gate(
    spec: GateSpec,
    baseline: Baseline,
    *,
    recipes: Mapping[str, Recipe],
    store: Store | None = None,
    speed: bool = True,
    inconclusive_ok: bool = False,
    quiet_machine: bool = False,
    margins: Path | None = None,
    progress: Tell | None = None,
) -> GateResult:
    """Run what is missing and judge it against the baseline.

    `NotComparableError` and other user's errors (exit code 2) come before any work. `speed`: time fresh processes, too,
    when the baseline was recorded on a machine of this class. `inconclusive_ok`: what could not be decided does not
    fail. `margins`: a file to take the place of the lab's own.
    """
    began, tell, results = time.monotonic(), progress or (lambda line: None), store or Store()
    chosen, plan = choose_recipes(spec, recipes)
    if reasons := misfits(baseline, spec, plan):
        raise NotComparableError(
            f"baseline {baseline.name!r} is not comparable: {'; '.join(reasons)}. Record a baseline of this voice: "
            f"labkit baseline record NAME --sweep FILE"
        )
    items = [text.id for text in plan.texts]
    anchors = {item: baseline.anchors[item] for item in items}
    measured = measure(spec, chosen, results, tell, anchors=anchors, arm=True)
    lines = [
        line for name in chosen for line in compare_recipe(name, measured, baseline, spec.tiers, margins)
    ]
    arm = compare_arm(measured, baseline, margins)
    lines = heed_arm(lines, arm)
    costs, notes = _costs(
        spec, baseline, chosen, results, tell, margins, speed=speed, quiet_machine=quiet_machine
    )
    lines += costs
    outcome = overall(
        [line.verdict for line in lines], inconclusive_exit=PASSED if inconclusive_ok else INCONCLUSIVE
    )
    return GateResult(
        name=spec.name, baseline=baseline.name, overall=outcome, lines=tuple(lines), arm=tuple(arm),
        clips=tuple(Ear(results, measured, baseline).clips(lines)), notes=tuple(notes),
        facts=_facts(spec, baseline, len(items)), seconds=time.monotonic() - began,
    )  # fmt: skip


def _costs(
    spec: GateSpec,
    baseline: Baseline,
    chosen: Mapping[str, Recipe],
    store: Store,
    tell: Tell,
    margins: Path | None,
    *,
    speed: bool,
    quiet_machine: bool,
) -> tuple[list[Line], list[str]]:
    """Cost verdicts, or a note that says why there are none."""
    here = machine_class(describe_environment())
    known = [recipe for name, recipe in chosen.items() if name in baseline.about.costs]
    if not speed or not spec.speed.head_processes:
        return [], ["speed was not asked for"]
    if not known:
        return [], ["speed: the baseline has no costs of these recipes"]
    if here != baseline.about.machine_class:
        return [], [
            f"speed: not comparable, the baseline is of another machine class ({baseline.about.machine_class})"
        ]
    head = measure_costs(spec, known, spec.speed.head_processes, store, tell)
    lines = []
    for recipe in known:  # one whose processes all failed has no costs, and is told about
        base, now = baseline.about.costs[recipe.name], head.get(recipe.name, Costs())
        lines += compare_costs(recipe.name, base, now, margins, quiet_machine=quiet_machine)
    unknown = [name for name in chosen if name not in baseline.about.costs]
    return lines, [f"speed: the baseline has no costs of {', '.join(unknown)}"] if unknown else []


def _facts(spec: GateSpec, baseline: Baseline, sentences: int) -> tuple[tuple[str, str], ...]:
    about, environment = baseline.about, describe_environment()
    return (
        ("voice", f"{spec.voice} ({about.weights_hash[:12]})"),
        (
            "sentences",
            f"{sentences} of {spec.corpus}"
            + (f", seeds {', '.join(map(str, spec.seeds))}" if 3 in spec.tiers else ""),
        ),
        ("tiers", ", ".join(map(str, spec.tiers))),
        ("code", _commit(environment)),
        ("machine", machine_class(environment)),
        ("baseline recorded", about.recorded_at),
        ("baseline code", _commit(about.environment)),
        ("baseline machine", about.machine_class),
    )


def _commit(environment: Mapping[str, object]) -> str:
    commit = environment.get("git_commit")
    if not commit:
        return "not under version control"
    return str(commit)[:12] + (", with changes" if environment.get("git_dirty") else "")
