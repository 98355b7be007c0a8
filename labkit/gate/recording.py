"""Recording a baseline: everything a gate measures, once, into a folder to be committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from labkit.environment import describe_environment, machine_class
from labkit.errors import LabError, UserError
from labkit.gate.baseline import (
    Baseline,
    Costs,
    Description,
    baselines_folder,
    misfits,
    read_baseline,
    write_baseline,
)
from labkit.gate.measuring import Measured, anchors_of, choose_recipes, measure, measure_costs
from labkit.gate.probing import Tell
from labkit.gate.spec import REFERENCE, TIERS, GateSpec
from labkit.results.store import Store
from labkit.run.request import Plan
from labkit.spec import Recipe


def record_baseline(
    name: str,
    gate: GateSpec,
    *,
    recipes: Mapping[str, Recipe],
    store: Store | None = None,
    folder: Path | None = None,
    speed: bool = True,
    progress: Tell | None = None,
) -> Baseline:
    """Measure every recipe of the gate and write `<results>/baselines/<name>/`, or `folder`.

    Raises the user's errors before any work; `LabError` when a recipe cannot be recorded: a baseline is whole.
    """
    tell, results = progress or (lambda line: None), store or Store()
    chosen, plan = choose_recipes(gate, recipes)
    # the first three tiers come from one probe, and its tokens are what everything later is held to
    gate = gate.model_copy(update={"tiers": tuple(t for t in TIERS if t < 3 or t in gate.tiers)})
    measured = measure(gate, chosen, results, tell, anchors=None, arm=False)
    for recipe in chosen:
        for document in measured.probes(recipe):
            if document.failure is not None:
                raise LabError(
                    f"baseline {name!r}: recipe {recipe} is {document.status} in its {document.part} part "
                    f"({document.failure.message}). Mend it or take it out of the gate."
                )
    costs = {}
    if speed and gate.speed.base_processes:
        costs = measure_costs(gate, chosen.values(), gate.speed.base_processes, results, tell)
    reference = measured.forced[REFERENCE]
    baseline = Baseline(
        folder or baselines_folder(results.folder) / name,
        _describe(name, gate, measured, plan, costs),
        {recipe: measured.scores(recipe) for recipe in chosen},
        anchors_of(results, reference),
    )
    write_baseline(baseline)
    return baseline


def time_baseline(name: str, *, store: Store | None = None, progress: Tell | None = None) -> Baseline:
    """Time the recipes of a recorded baseline anew, on this machine, and write it; its scores stay as they are.

    `UserError` when there is no such baseline or it is of another voice or corpus than is here; `LabError` when a
    recipe cannot be timed: the old costs are kept.
    """
    tell, results = progress or (lambda line: None), store or Store()
    old = read_baseline(name, results.folder)
    gate = old.about.gate
    _, plan = choose_recipes(gate, old.about.recipes)
    if reasons := misfits(old, gate, plan):
        raise UserError(f"baseline {old.folder} cannot be timed: {'; '.join(reasons)}. Record it anew.")
    costs = measure_costs(gate, old.about.recipes.values(), gate.speed.base_processes, results, tell)
    if missing := sorted(set(old.about.recipes) - set(costs)):
        raise LabError(
            f"baseline {old.folder}: {', '.join(missing)} could not be timed; nothing was changed."
        )
    environment = describe_environment()
    here = {"costs": costs, "environment": environment, "machine_class": machine_class(environment)}
    timed = replace(old, about=old.about.model_copy(update=here))
    write_baseline(timed)
    return timed


def _describe(
    name: str, gate: GateSpec, measured: Measured, plan: Plan, costs: dict[str, Costs]
) -> Description:
    reference = measured.forced[REFERENCE]
    scored = [
        score for document in measured.probes(REFERENCE) for score in document.scores if score.scorer_version
    ]
    return Description(
        name=name,
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        gate=gate,
        recipes=measured.recipes,
        weights_hash=plan.voice.weights_hash,
        corpus_hash=plan.corpus_hash,
        items={text.id: text.text for text in plan.texts},
        machine_class=reference.machine_class,
        environment=reference.environment,
        scorers={score.metric: f"{score.scorer} {score.scorer_version}" for score in scored},
        costs=costs,
    )
