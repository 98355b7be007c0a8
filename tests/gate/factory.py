"""Probes and baselines from invented scores, so that a gate can be run without speaking."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from labkit.gate.anchor import Anchor, make_anchor
from labkit.gate.baseline import Baseline, Costs, Description
from labkit.gate.document import OWN_SCORER, ItemScore, ProbeDocument, probe_folder, write_probe
from labkit.gate.figures import Forced
from labkit.gate.measuring import scores_of
from labkit.gate.order import ForcedClip, FreeClip, save_forced, save_free
from labkit.gate.probing import Ask
from labkit.gate.spec import REFERENCE, GateSpec
from labkit.results.store import Store
from labkit.run.request import plan_run
from labkit.spec import default_recipes

STEPS = 20
MACHINE = "a machine"
# tier -> metric -> (mean, spread over sentences) of a voice that is well
WELL: dict[int, dict[str, tuple[float, float]]] = {
    0: {"valid": (1.0, 0.0)},
    1: {
        "kl": (0.0005, 1e-4),
        "total_variation": (0.002, 1e-4),
        "top1": (0.97, 0.01),
        "hidden_error": (0.02, 0.002),
        "nll_delta": (0.0, 1e-4),
    },
    2: {
        "log_mel_db": (0.01, 0.001),
        "high_band_loss_db": (0.0, 0.01),
        "duration_ratio": (1.0, 0.0),
        "dnsmos_p808": (3.0, 0.2),
    },
    3: {"dnsmos_p808": (3.0, 0.2), "wer": (0.02, 0.01)},
}


def gate_spec(**changes: Any) -> GateSpec:
    values: dict[str, Any] = {
        "name": "try", "corpus": "nano-heldout", "texts": 30, "recipe": ("ort-fp32",), "tiers": (0, 1, 2),
    }  # fmt: skip
    return GateSpec(**{**values, **changes})


@cache
def items_of(spec: GateSpec) -> list[str]:
    return [text.id for text in plan_run(spec.run_spec(default_recipes()[REFERENCE])).texts]


def scores(
    items: list[str], tier: int, seeds: tuple[int, ...], change: Mapping[str, float], salt: int = 0
) -> list[ItemScore]:
    """One score of each metric for each sentence and seed; `change` is added to a metric's mean."""
    found = []
    for metric, (mean, spread) in WELL[tier].items():
        rng = np.random.default_rng([tier, len(metric), salt])
        for seed in seeds:
            for item in items:
                value = mean + spread * float(rng.standard_normal()) + change.get(metric, 0.0)
                found.append(
                    ItemScore(
                        tier=tier, item=item, seed=seed, metric=metric, value=value, scorer="s", scorer_version="1"
                    )
                )  # fmt: skip
    return found


def document(
    recipe: str, part: str, rows: list[ItemScore], status: str = "ok", number: int = 0, **changes: Any
) -> ProbeDocument:
    failure = None if status == "ok" else {"kind": "Crash", "message": "it fell over", "stage": "speak"}
    values = {
        "probe_id": f"2026-{recipe}-{part}-{number}", "started_at": "2026", "part": part,
        "recipe": default_recipes().get(recipe) or {"name": recipe}, "work": {}, "work_hash": f"{recipe}{part}",
        "status": status, "failure": failure, "environment": {}, "machine_class": MACHINE,
        "scores": rows, "wall_s": 1.0,
    }  # fmt: skip
    return ProbeDocument.model_validate({**values, **changes}, strict=False)


class FakeProbes:
    """Takes the place of `probe`: scores and clips without speaking. Public: what was asked for.

    change: recipe -> metric -> what is added to its scores; broken: recipe -> status of its probes;
    own_scorer: the recipe whose log-mel distance the gate figured itself; unscored: metrics that nobody scores;
    broken_free: recipe -> sentences whose first free clip is no speech.
    """

    def __init__(
        self,
        change: dict[str, dict[str, float]] | None = None,
        broken: dict[str, str] | None = None,
        own_scorer: str = "",
        unscored: tuple[str, ...] = (),
        broken_free: dict[str, list[str]] | None = None,
    ) -> None:
        self.change, self.broken, self.own_scorer = change or {}, broken or {}, own_scorer
        self.unscored, self.broken_free = unscored, broken_free or {}
        self.asked: list[Ask] = []

    def __call__(self, ask: Ask, store: Store, tell: Any) -> ProbeDocument:
        self.asked.append(ask)
        items, name = items_of(ask.gate), ask.recipe.name
        status = self.broken.get(name, "ok")
        arm = "arm" if ask.part == "free" and ask.seeds != ask.gate.seeds else name
        rows: list[ItemScore] = []
        if status == "ok":
            tiers, seeds = ((0, 1, 2), (0,)) if ask.part == "forced" else ((0, 3), ask.seeds)
            rows = [
                row
                for tier in tiers
                for row in scores(items, tier, seeds, self.change.get(arm, {}), len(self.asked))
                if row.metric not in self.unscored
            ]
        if ask.part == "free" and (lost := self.broken_free.get(arm)):
            rows = [
                r.model_copy(update={"value": 0.0})
                if r.metric == "valid" and r.item in lost and r.seed == ask.seeds[0]
                else r
                for r in rows
            ]
        if name == self.own_scorer:
            rows = [
                r.model_copy(update={"scorer": OWN_SCORER}) if r.metric == "log_mel_db" else r for r in rows
            ]
        found = document(name, ask.part, rows, status, len(self.asked))
        folder = probe_folder(store, found)
        folder.mkdir(parents=True)
        for number in range(len(items) if status == "ok" else 0):
            if ask.part == "forced":
                save_forced(folder, number, forced_clip(number))
            else:
                for seed in ask.seeds:
                    save_free(
                        folder, number, seed, FreeClip(np.zeros((3, 4), np.int64), tone(number), True, ())
                    )
        write_probe(store, found)
        return found


def tone(number: int) -> np.ndarray:
    seconds = np.arange(512 * STEPS - 256) / 24000
    return (0.2 * np.sin(2 * np.pi * (200 + 10 * number) * seconds)).astype(np.float32)


@cache
def forced_clip(number: int) -> ForcedClip:
    rng = np.random.default_rng(number)
    answer = Forced(
        rng.standard_normal((STEPS + 1, 4, 8)).astype(np.float32),
        rng.standard_normal((STEPS + 1, 16)).astype(np.float32),
    )
    return ForcedClip(answer, rng.integers(0, 7, (STEPS, 4)), tone(number), tone(number), tone(number))


@cache
def anchor(number: int) -> Anchor:
    clip = forced_clip(number)
    return make_anchor(clip.answer, clip.codes, clip.heard)


def baseline(folder: Path, spec: GateSpec | None = None, **changes: Any) -> Baseline:
    """A baseline of the given gate on the voice that is here."""
    spec = spec or gate_spec(tiers=(0, 1, 2, 3))
    plan = plan_run(spec.run_spec(default_recipes()[REFERENCE]))
    items = {text.id: text.text for text in plan.texts}
    values = {
        "name": "base", "recorded_at": "2026-01-01", "gate": spec,
        "recipes": {name: default_recipes()[name] for name in spec.recipe},
        "weights_hash": plan.voice.weights_hash, "corpus_hash": plan.corpus_hash, "items": items,
        "machine_class": MACHINE, "environment": {}, "scorers": {"kl": "s 1", "dnsmos_p808": "s 1"},
    }  # fmt: skip
    made = {
        recipe: scores_of(
            [
                document(
                    recipe, "forced", [r for t in (0, 1, 2) for r in scores(list(items), t, (0,), {}, salt)]
                ),
                document(
                    recipe, "free", [r for t in (0, 3) for r in scores(list(items), t, spec.seeds, {}, salt)]
                ),
            ]
        )
        for salt, recipe in enumerate(spec.recipe)
    }
    return Baseline(
        folder,
        Description(**{**values, **changes}),
        made,
        {item: anchor(number) for number, item in enumerate(items)},
    )


def costs(cpu_s: float, processes: int) -> Costs:
    times = {f"run{i}": cpu_s * (1 + 0.002 * i) for i in range(processes)}
    return Costs(
        cpu_yardsticks=times,
        cpu_s=times,
        latency_s=times,
        rss_peak_bytes=dict.fromkeys(times, 1e9),
        steps={"a": 40.0, "b": 50.0},
    )
