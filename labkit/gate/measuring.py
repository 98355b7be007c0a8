"""All that a gate or a baseline measures: probes of every recipe, and fresh processes for speed.

It knows the order of work. It compares nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labkit.errors import LabError
from labkit.gate.anchor import Anchor, make_anchor
from labkit.gate.baseline import Costs, RecipeScores
from labkit.gate.document import ProbeDocument, probe_folder
from labkit.gate.order import load_forced
from labkit.gate.probing import Ask, Tell, check_recipe_for_gate, probe
from labkit.gate.spec import AA_SEEDS, REFERENCE, GateSpec
from labkit.measure import yardstick
from labkit.results.schema import RunDocument
from labkit.results.store import Store
from labkit.run.request import Plan
from labkit.spec import Recipe, find_recipe


@dataclass(frozen=True)
class Measured:
    """What a gate measured. forced, free: recipe -> its probe; aa: the reference with other seeds."""

    recipes: dict[str, Recipe]
    forced: dict[str, ProbeDocument] = field(default_factory=dict)
    free: dict[str, ProbeDocument] = field(default_factory=dict)
    aa: ProbeDocument | None = None

    def probes(self, recipe: str) -> list[ProbeDocument]:
        return [part[recipe] for part in (self.forced, self.free) if recipe in part]

    def scores(self, recipe: str) -> RecipeScores:
        return scores_of(self.probes(recipe))


def choose_recipes(gate: GateSpec, known: Mapping[str, Recipe]) -> tuple[dict[str, Recipe], Plan]:
    """The gate's recipes by name, each checked before any work, and what all of them speak."""
    recipes = {name: find_recipe(name, known) for name in gate.recipe}
    plans = [check_recipe_for_gate(gate, recipe) for recipe in recipes.values()]
    return recipes, plans[0]


def measure(
    gate: GateSpec,
    recipes: Mapping[str, Recipe],
    store: Store,
    tell: Tell,
    *,
    anchors: Mapping[str, Anchor] | None,
    arm: bool,
) -> Measured:
    """Every tier of the gate. `anchors`: the baseline's tokens, None to record new ones; `arm`: the A/A arm, too.

    `LabError` when the reference recipe itself cannot speak: then there is nothing to compare with.
    """
    judged = 2 in gate.tiers
    forced, free, aa = {}, {}, None
    if set(gate.tiers) & {0, 1, 2}:
        first = _reference(
            probe(Ask(gate, recipes[REFERENCE], "forced", anchors, judged=judged), store, tell)
        )
        forced[REFERENCE] = first
        tokens = anchors if anchors is not None else anchors_of(store, first)
        for name, recipe in recipes.items():
            if name != REFERENCE:
                forced[name] = probe(Ask(gate, recipe, "forced", tokens, first, judged=judged), store, tell)
    if 3 in gate.tiers:
        first = _reference(probe(Ask(gate, recipes[REFERENCE], "free", seeds=gate.seeds), store, tell))
        free[REFERENCE] = first
        for name, recipe in recipes.items():
            if name != REFERENCE:
                ask = Ask(gate, recipe, "free", reference=first, seeds=gate.seeds)
                free[name] = probe(ask, store, tell)
        if arm:
            seeds = tuple(seed + AA_SEEDS for seed in gate.seeds)
            aa = probe(Ask(gate, recipes[REFERENCE], "free", seeds=seeds), store, tell)
    measured = Measured(dict(recipes), forced, free, aa)
    _of_one_voice(measured)
    return measured


def measure_costs(
    gate: GateSpec, recipes: Iterable[Recipe], processes: int, store: Store, tell: Tell
) -> dict[str, Costs]:
    """Costs of each recipe from that many fresh processes, interleaved, so that a slow minute falls on all of them.

    Runs are ordinary runs of the store; one that is not ok costs its number and is told about.
    """
    from labkit.run import run

    recipes = list(recipes)
    runs: dict[str, list[RunDocument]] = {recipe.name: [] for recipe in recipes}
    for number in range(processes):
        for recipe in recipes:
            spec = gate.run_spec(
                recipe, texts=gate.speed.texts, repeats=gate.speed.repeats, warmups=1, quality=False
            )
            document = run(spec, store=store.folder, sweep=f"gate-{gate.name}")
            tell(f"speed, process {number + 1} of {processes}: {recipe.name}: {document.status}")
            if document.status == "ok":
                runs[recipe.name].append(document)
    return {name: costs_of(documents) for name, documents in runs.items() if documents}


def costs_of(documents: Sequence[RunDocument]) -> Costs:
    """One number for each process, and the steps of each sentence in the first of them."""
    from labkit.compare import process_medians
    from labkit.results.frames import long_frame

    frame = long_frame(documents)
    peaks = {each.run_id: each.measures.values.get("rss_peak_bytes") for each in documents}
    samples = [each for each in documents[0].samples if each.phase == "measured"]
    return Costs(
        yardstick=yardstick.VERSION,
        cpu_yardsticks=process_medians(frame, "cpu_yardsticks"),
        cpu_s=process_medians(frame, "cpu_s"),
        latency_s=process_medians(frame, "latency_s"),
        rss_peak_bytes={run: float(peak) for run, peak in peaks.items() if peak is not None},
        steps={
            each.item: float(steps) for each in samples if (steps := each.values.get("steps")) is not None
        },
    )


def scores_of(probes: Iterable[ProbeDocument]) -> RecipeScores:
    """Scores by the family they are judged in: `tier0` to `tier2` of a forced probe, `tier3` of a free one.

    Of validity only the word itself is kept: its numbers are no scores.
    """
    found: RecipeScores = {}
    for document in probes:
        for score in sorted(document.scores, key=lambda score: score.seed):
            if score.tier == 0 and score.metric != "valid":
                continue
            family = f"tier{score.tier}" if document.part == "forced" else "tier3"
            metrics = found.setdefault(family, {})
            metrics.setdefault(score.metric, {}).setdefault(score.item, []).append(score.value)
    return found


def anchors_of(store: Store, document: ProbeDocument) -> dict[str, Anchor]:
    """Fingerprints of what the reference answered, by sentence."""
    folder = probe_folder(store, document)
    anchors = {}
    for number, item in enumerate(items_of(document)):
        clip = load_forced(Path(folder), number)
        anchors[item] = make_anchor(clip.answer, clip.codes, clip.heard)
    return anchors


def items_of(document: ProbeDocument) -> list[str]:
    """Sentences of a probe, in the order they were spoken."""
    return list(dict.fromkeys(score.item for score in document.scores))


def _of_one_voice(measured: Measured) -> None:
    """`LabError` when the voice's files were replaced while it was measured."""
    documents = [*measured.forced.values(), *measured.free.values(), *([measured.aa] if measured.aa else [])]
    hashes = {str(document.work.get("weights")) for document in documents}
    if len(hashes) > 1:
        shown = ", ".join(sorted(each[:12] for each in hashes))
        raise LabError(
            f"the voice changed while it was measured (weights {shown}); run the same command again."
        )


def _reference(document: ProbeDocument) -> ProbeDocument:
    if document.status != "ok":
        assert document.failure is not None
        raise LabError(
            f"the reference recipe {REFERENCE} cannot speak ({document.status}: {document.failure.message}); "
            f"nothing can be compared. {document.failure.remedy}"
        )
    return document
