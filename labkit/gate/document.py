"""The probe document: what one recipe did in one part of a gate, sentence by sentence, as immutable raw scores.

It stands beside the run documents in the store and is written as they are: whole or not at all.

    <store>/probes/<probe_id>.json      the document
    <store>/probes/<probe_id>/*.npz     everybody's clips, and the reference's answers
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from labkit.errors import StoreError
from labkit.results.schema import Failure, RunStatus
from labkit.results.store import Store, write_atomic
from labkit.spec import Recipe

SCHEMA_VERSION: Final = 1
Part = Literal["forced", "free"]
OWN_SCORER = "labkit.gate"  # of what is figured here and not by the panel


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class ItemScore(_Record):
    """One metric of one sentence (and seed, in free-running speech); a null has its reason."""

    tier: Literal[0, 1, 2, 3]
    item: str
    seed: int
    metric: str
    value: float | None
    unit: str = ""
    reason: str = ""
    scorer: str = ""
    scorer_version: str = ""

    @model_validator(mode="after")
    def _null_has_reason(self) -> ItemScore:
        if self.value is None and not self.reason:
            raise ValueError(f"metric {self.metric!r} of {self.item!r} is null without a reason")
        return self


class ProbeDocument(_Record):
    """One recipe in one part of a gate: `forced` (tiers 0 to 2) or `free` (tiers 0 and 3).

    work: everything that decides the scores, code included; its hash says whether a probe need not be made again.
    by_codebook: item -> metric -> a mean for each codebook, of tier 1.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    probe_id: str
    started_at: str
    part: Part
    recipe: Recipe
    work: dict[str, Any]
    work_hash: str
    status: RunStatus
    failure: Failure | None = None
    environment: dict[str, Any]
    machine_class: str
    scores: tuple[ItemScore, ...] = Field(default=(), strict=False)
    by_codebook: dict[str, dict[str, list[float]]] = Field(default_factory=dict)
    notes: tuple[str, ...] = Field(default=(), strict=False)
    wall_s: float


def probes_folder(store: Store) -> Path:
    return store.folder / "probes"


def probe_folder(store: Store, document: ProbeDocument) -> Path:
    """Where the arrays and clips of a probe lie."""
    return probes_folder(store) / document.probe_id


def write_probe(store: Store, document: ProbeDocument) -> Path:
    """Keep a probe for good; its folder must be in place. `StoreError` when it cannot be written."""
    target = probes_folder(store) / f"{document.probe_id}.json"
    text = json.dumps(document.model_dump(), allow_nan=False, ensure_ascii=False, indent=None)
    try:
        write_atomic(target, text.encode())
    except OSError as error:
        raise StoreError(f"{target} cannot be written ({error}); free some disk space.") from error
    return target


def find_probe(store: Store, work_hash: str) -> ProbeDocument | None:
    """The newest good probe of this work that is still whole, or None."""
    for path in sorted(probes_folder(store).glob("*.json"), reverse=True):
        if work_hash not in path.name or not path.with_suffix("").is_dir():
            continue
        try:
            document = ProbeDocument.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            continue  # it is made again: a probe is no record of the past that must be kept
        if document.status == "ok" and document.work_hash == work_hash:
            return document
    return None
