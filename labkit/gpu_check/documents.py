"""Run documents without pydantic: the plain shape of `labkit.results.schema`, version 1, written atomically.

A test holds these documents against the schema, so that they load in the results store like any other.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labkit.gpu_check.cases import work_hash

SCHEMA_VERSION = 1
SWEEP = "gpu-check"


@dataclass
class Outcome:
    """What became of one case at one batch size. A null among `values` has its reason."""

    status: str = "ok"
    failure: dict[str, Any] | None = None
    values: dict[str, float | int | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    placement: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def missing(self, name: str, reason: str) -> None:
        """Null with its reason, unless the value is there."""
        if self.values.get(name) is None:
            self.values[name] = None
            self.reasons.setdefault(name, reason)


def failure(kind: str, message: str, stage: str, remedy: str = "", traceback: str = "") -> dict[str, Any]:
    """What `labkit.results.schema.Failure` holds."""
    return {
        "kind": kind, "message": message, "stage": stage, "remedy": remedy, "traceback": traceback,
    }  # fmt: skip


def run_document(
    outcome: Outcome,
    spec: dict[str, Any],
    *,
    started: datetime,
    environment: dict[str, Any],
    machine_class: str,
    weights_hash: str,
    corpus_hash: str,
) -> dict[str, Any]:
    """One run, ready to be written."""
    moment = started.astimezone(UTC)
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": f"{moment:%Y%m%dT%H%M%S.%f}Z-{spec['recipe']['name']}-{secrets.token_hex(3)}",
        "started_at": moment.isoformat(),
        "spec": spec,
        "work_hash": work_hash(spec),
        "sweep": SWEEP,
        "status": outcome.status,
        "failure": outcome.failure,
        "environment": environment,
        "weights_hash": weights_hash,
        "corpus_hash": corpus_hash,
        "machine_class": machine_class,
        "measures": {"values": outcome.values, "reasons": outcome.reasons},
        "artifacts": [],
        "placement": outcome.placement,
        "samples": outcome.samples,
        "quality": [],
        "notes": outcome.notes,
    }


def write_document(store: Path, document: dict[str, Any]) -> Path:
    """Put a document under `<store>/runs/`: whole or not at all."""
    folder = store / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{document['run_id']}.json"
    partial = folder / f".{target.name}.{os.getpid()}.tmp"
    try:
        with partial.open("w", encoding="utf-8") as file:
            json.dump(document, file, allow_nan=False, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
