"""A baseline: what a voice scored on a day when it was good, small enough to be committed.

    <folder>/baseline.json    what was recorded: gate, hashes of voice and corpus, machine class, tools, speed
    <folder>/scores.json      recipe -> tier -> metric -> sentence -> scores by seed
    <folder>/reference.npz    the reference recipe's tokens and fingerprints (see `labkit.gate.anchor`)

It knows files and what makes a baseline fit a gate. How it is recorded is in `labkit.gate.recording`.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from zipfile import BadZipFile

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labkit.errors import StoreError, UserError
from labkit.gate.anchor import Anchor
from labkit.gate.spec import GateSpec
from labkit.results.store import Store, write_atomic
from labkit.run.request import Plan
from labkit.spec import Recipe

SCHEMA_VERSION: Final = 1
DESCRIPTION, SCORES, ANCHORS = "baseline.json", "scores.json", "reference.npz"
TierScores = dict[str, dict[str, list[float | None]]]
"""Metric -> sentence -> scores by seed, in the order of the gate's seeds."""
RecipeScores = dict[str, TierScores]
"""`tier0` … `tier3` -> its scores; as the families of the margins are called."""


class Costs(BaseModel):
    """One number for each fresh process, by run id: CPU time of all texts as multiples of the yardstick's (and which
    version of it), CPU and wall seconds, peak memory; and the decode steps of each sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    yardstick: int = Field(1, ge=1)
    cpu_yardsticks: dict[str, float] = Field(default_factory=dict)
    cpu_s: dict[str, float] = Field(default_factory=dict)
    latency_s: dict[str, float] = Field(default_factory=dict)
    rss_peak_bytes: dict[str, float] = Field(default_factory=dict)
    steps: dict[str, float] = Field(default_factory=dict)


class Description(BaseModel):
    """What `baseline.json` holds. `items` are the sentences in order; `costs` may lack recipes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    schema_version: Literal[1] = SCHEMA_VERSION
    name: str
    recorded_at: str
    gate: GateSpec
    recipes: dict[str, Recipe]
    weights_hash: str
    corpus_hash: str
    items: dict[str, str]
    machine_class: str
    environment: dict[str, Any]
    scorers: dict[str, str] = Field(description="metric -> version of what scored it")
    costs: dict[str, Costs] = Field(default_factory=dict)


@dataclass(frozen=True)
class Baseline:
    """A recorded baseline, whole. `anchors`: by sentence."""

    folder: Path
    about: Description
    scores: dict[str, RecipeScores]
    anchors: dict[str, Anchor]

    @property
    def name(self) -> str:
        return self.about.name

    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.iterdir())


def baselines_folder(results: Path | None = None) -> Path:
    """Where named baselines lie: in the results folder, of which they are the committed part."""
    return Store(results).folder / "baselines"


def baseline_folder(name: str, results: Path | None = None) -> Path:
    """The folder of a baseline by its path (with a separator, or that is there) or by its name."""
    path = Path(name)
    return path if path.is_dir() or len(path.parts) > 1 else baselines_folder(results) / name


def list_baselines(results: Path | None = None) -> list[str]:
    """Names of the baselines in the results folder."""
    return sorted(file.parent.name for file in baselines_folder(results).glob(f"*/{DESCRIPTION}"))


def read_baseline(name: str, results: Path | None = None) -> Baseline:
    """Read a baseline by path or name; `UserError` when there is none, `StoreError` when it is damaged."""
    folder = baseline_folder(name, results)
    if not (folder / DESCRIPTION).is_file():
        known = ", ".join(list_baselines(results)) or "none"
        raise UserError(
            f"no baseline is in {folder}; baselines in {baselines_folder(results)}: {known}. "
            f"Record one: labkit baseline record {Path(name).name} --sweep sweeps/gate.yaml"
        )
    try:
        about = Description.model_validate_json((folder / DESCRIPTION).read_bytes())
        scores = json.loads((folder / SCORES).read_bytes())
        with np.load(folder / ANCHORS) as stored:
            arrays = dict(stored)
        anchors = {item: Anchor.from_arrays(arrays, item) for item in about.items}
    except (OSError, ValueError, KeyError, ValidationError, BadZipFile) as error:
        what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise StoreError(
            f"baseline {folder} cannot be read ({type(error).__name__}: {what}); restore it or record it anew."
        ) from error
    return Baseline(folder, about, scores, anchors)


def write_baseline(baseline: Baseline) -> None:
    """Write all three files, the description last; an older baseline of that name is replaced."""
    buffer = io.BytesIO()
    arrays = [anchor.arrays(item) for item, anchor in baseline.anchors.items()]
    np.savez_compressed(buffer, **{key: each for one in arrays for key, each in one.items()})  # type: ignore[arg-type]
    try:
        write_atomic(baseline.folder / ANCHORS, buffer.getvalue())
        write_atomic(baseline.folder / SCORES, _one_metric_a_line(baseline.scores).encode())
        about = baseline.about.model_dump_json(indent=1, exclude_unset=False)
        write_atomic(baseline.folder / DESCRIPTION, (about + "\n").encode())
    except OSError as error:
        raise StoreError(f"baseline {baseline.folder} cannot be written ({error}).") from error


def misfits(baseline: Baseline, gate: GateSpec, plan: Plan) -> list[str]:
    """Why this baseline says nothing about this gate, one reason each; empty when it fits.

    Voice, corpus and everything that decides the tokens must be the same. Another machine class concerns speed alone.
    """
    about, reasons = baseline.about, []
    for what, ours, theirs in (
        ("voice", plan.voice.weights_hash, about.weights_hash),
        ("corpus", plan.corpus_hash, about.corpus_hash),
    ):
        if ours != theirs:
            reasons.append(f"it is of another {what} (hash {theirs[:12]}, here {ours[:12]})")
    seeds = ("seeds",) if 3 in gate.tiers and 3 in about.gate.tiers else ()
    for key in ("speaker", "audio_path", "reference_seed", "max_steps", *seeds):
        ours, theirs = getattr(gate, key), getattr(about.gate, key)
        if ours != theirs:
            reasons.append(f"it was recorded with {key} {theirs!r}, and this gate says {ours!r}")
    missing = [text.id for text in plan.texts if text.id not in baseline.anchors]
    if missing and not reasons:
        reasons.append(f"it lacks {len(missing)} of the {len(plan.texts)} sentences, such as {missing[0]}")
    return reasons


def _one_metric_a_line(scores: dict[str, RecipeScores]) -> str:
    """Scores as JSON that a diff can be read of: one metric a line, values to six digits."""
    recipes = []
    for recipe, tiers in scores.items():
        lines = []
        for tier, metrics in tiers.items():
            rows = [
                f"   {json.dumps(name)}: {json.dumps(_rounded(items))}" for name, items in metrics.items()
            ]
            lines.append(f"  {json.dumps(tier)}: {{\n" + ",\n".join(rows) + "\n  }")
        recipes.append(f" {json.dumps(recipe)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(recipes) + "\n}\n"


def _rounded(items: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
    return {
        item: [None if value is None else float(f"{value:.6g}") for value in values]
        for item, values in items.items()
    }
