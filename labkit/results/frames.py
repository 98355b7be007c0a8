"""From run documents to DataFrames; every statistic of the lab's tables is computed here, from raw samples.

It knows documents and pandas. It does not know files (`store`), caches (`index`) or comparisons (`labkit.compare`).

Wide, one row per run:
    identity            run_id, recipe, voice, scenario, …, status, failure_kind, failure_message
    run numbers         load_s, rss_peak_bytes, size_on_disk_bytes, … as recorded
    sample metrics      <metric>_p50, _p90, _p95, _p99 over the measured samples (warm-ups never enter)
    quality             <metric>_mean over clips, <metric>_n clips that have a score
    reasons             {column: why it is missing}
Long, one row per number: see `LONG_COLUMNS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from labkit.results.ratings import Vote
from labkit.results.schema import RunDocument, Sample
from labkit.results.units import QUANTILES, describe

IDENTITY = (
    "run_id", "started_at", "sweep", "status", "failure_kind", "failure_message", "failure_stage", "remedy",
    "recipe", "gpt", "decoder", "vocoder", "voice", "scenario", "corpus", "device", "speaker", "audio_path",
    "work_hash", "weights_hash", "corpus_hash", "machine_class",
)  # fmt: skip
IDENTITY_NUMBERS = ("texts", "threads", "seed", "repeats")
LONG_COLUMNS = (
    "run_id", "sweep", "status", "recipe", "voice", "scenario", "corpus", "device", "threads", "seed", "audio_path",
    "level", "phase", "repetition", "item", "step", "metric", "value", "unit", "reason", "rater",
)  # fmt: skip


@dataclass(frozen=True)
class WideRow:
    """One run, reduced: text identity, numbers (None = missing) and the reasons for what is missing."""

    identity: dict[str, str | None]
    numbers: dict[str, float | None]
    reasons: dict[str, str] = field(default_factory=dict)


def wide_row(document: RunDocument) -> WideRow:
    """Reduce one document to its row."""
    numbers: dict[str, float | None] = dict(_identity_numbers(document))
    reasons = dict(document.measures.reasons)
    if document.artifacts:
        numbers["size_on_disk_bytes"] = sum(artifact.size_bytes for artifact in document.artifacts)
    numbers |= document.measures.values
    _add_samples(document, numbers, reasons)
    _add_quality(document, numbers, reasons)
    return WideRow(_identity(document), numbers, reasons)


def wide_frame(rows: Iterable[WideRow]) -> pd.DataFrame:
    """The wide table; identity columns are always there, also for an empty store."""
    records = [{**row.identity, **row.numbers, "reasons": row.reasons} for row in rows]
    columns = list(
        dict.fromkeys([*IDENTITY, *IDENTITY_NUMBERS, *(key for record in records for key in record)])
    )
    frame = pd.DataFrame.from_records(records, columns=columns)
    frame[list(IDENTITY)] = frame[list(IDENTITY)].astype("str")
    numbers = [name for name in columns if name not in (*IDENTITY, *IDENTITY_NUMBERS, "reasons")]
    # `copy` joins the columns, which pandas would otherwise keep in hundreds of pieces
    return frame.copy().astype(
        {**dict.fromkeys(IDENTITY_NUMBERS, "Int64"), **dict.fromkeys(numbers, "float64")}
    )


def long_frame(
    documents: Iterable[RunDocument], *, steps: bool = False, votes: Iterable[Vote] = ()
) -> pd.DataFrame:
    """The long table; `steps` adds each sample's series, `votes` what listeners said of these runs."""
    documents = list(documents)
    records = [record for document in documents for record in _long_records(document, steps)]
    records += _vote_records(documents, votes)
    frame = pd.DataFrame.from_records(records, columns=list(LONG_COLUMNS))
    frame["value"] = pd.to_numeric(frame["value"])
    return frame


def vote_columns(votes: Iterable[Vote]) -> pd.DataFrame:
    """By run id: `<metric>_mean` over the votes on recipes and `<metric>_n`, how many there are."""
    said: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for vote in votes:
        if not vote.anchor:
            said[vote.run_id][vote.metric].append(vote.value)
    rows = {
        run: {
            **{f"{metric}_mean": float(np.mean(values)) for metric, values in found.items()},
            **{f"{metric}_n": float(len(values)) for metric, values in found.items()},
        }
        for run, found in said.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", dtype="float64")


def _identity(document: RunDocument) -> dict[str, str | None]:
    spec, failure = document.spec, document.failure
    stages: dict[str, str] = {
        stage: f"{choice.engine} {choice.precision}" for stage, choice in spec.recipe.choices().items()
    }
    values: dict[str, Any] = {
        **document.model_dump(
            include={"run_id", "started_at", "sweep", "status", "work_hash", "weights_hash"}
        ),
        **document.model_dump(include={"corpus_hash", "machine_class"}),
        **spec.model_dump(include={"voice", "scenario", "corpus", "device", "speaker", "audio_path"}),
        **stages,
        "recipe": spec.recipe.name,
        "failure_kind": failure and failure.kind,
        "failure_message": failure and failure.message,
        "failure_stage": failure and failure.stage,
        "remedy": failure and failure.remedy,
    }
    return {name: values.get(name) for name in IDENTITY}


def _identity_numbers(document: RunDocument) -> dict[str, float | None]:
    return {name: getattr(document.spec, name) for name in IDENTITY_NUMBERS}


def _measured(document: RunDocument) -> list[Sample]:
    return [sample for sample in document.samples if sample.phase == "measured"]


def _add_samples(document: RunDocument, numbers: dict[str, float | None], reasons: dict[str, str]) -> None:
    values: dict[str, list[float]] = defaultdict(list)
    missing: dict[str, str] = {}
    for sample in _measured(document):
        for name, value in sample.values.items():
            if value is None:
                missing[name] = sample.reasons[name]
            else:
                values[name].append(value)
        for name, series in sample.series.items():
            values[name].extend(series)
    for name in {**missing, **values}:
        columns = [f"{name}_p{quantile}" for quantile in QUANTILES]
        if values[name]:
            numbers |= zip(columns, map(float, np.percentile(values[name], QUANTILES)), strict=True)
        else:
            numbers |= dict.fromkeys(columns)
            reasons |= dict.fromkeys(columns, missing.get(name, "no measured sample has it"))
    if document.samples:
        numbers["samples_n"] = len(_measured(document))


def _add_quality(document: RunDocument, numbers: dict[str, float | None], reasons: dict[str, str]) -> None:
    for metric in dict.fromkeys(score.metric for score in document.quality):
        scores = [score for score in document.quality if score.metric == metric]
        known = [score.value for score in scores if score.value is not None]
        numbers[f"{metric}_n"] = len(known)
        numbers[f"{metric}_mean"] = float(np.mean(known)) if known else None
        if not known:
            reasons[f"{metric}_mean"] = scores[0].reason


def _long_records(document: RunDocument, steps: bool) -> Iterator[dict[str, Any]]:
    identity = {**_identity(document), **_identity_numbers(document)}
    run = {name: identity[name] for name in LONG_COLUMNS if name in identity}
    for name, value in document.measures.values.items():
        yield run | _number(name, value, document.measures.reasons.get(name, "")) | {"level": "run"}
    for artifact in document.artifacts:
        where = run | {"level": "artifact", "item": artifact.stage}
        yield where | _number("size_bytes", artifact.size_bytes)
        yield where | _number(
            "build_s", artifact.build_s, "" if artifact.build_s is not None else "not recorded"
        )
    for sample in document.samples:
        where = run | {"level": "sample", **sample.model_dump(include={"phase", "repetition", "item"})}
        for name, value in sample.values.items():
            yield where | _number(name, value, sample.reasons.get(name, ""))
        for name, series in sample.series.items() if steps else ():
            for step, value in enumerate(series):
                yield where | _number(name, value) | {"level": "step", "step": step}
    for score in document.quality:
        where = (
            run | {"level": "quality", "phase": "measured"} | score.model_dump(include={"item", "repetition"})
        )
        yield where | {
            "metric": score.metric,
            "value": score.value,
            "unit": score.unit,
            "reason": score.reason,
        }


def _vote_records(documents: list[RunDocument], votes: Iterable[Vote]) -> Iterator[dict[str, Any]]:
    """Votes on recipes; those that test the listener say nothing of a run."""
    runs = {document.run_id: {**_identity(document), **_identity_numbers(document)} for document in documents}
    for vote in votes:
        if vote.anchor or vote.run_id not in runs:
            continue
        run = {name: value for name, value in runs[vote.run_id].items() if name in LONG_COLUMNS}
        where = {"level": "vote", "item": vote.item, "rater": vote.rater}
        yield run | _number(vote.metric, vote.value) | where


def _number(name: str, value: float | None, reason: str = "") -> dict[str, Any]:
    return {"metric": name, "value": value, "unit": describe(name).unit, "reason": reason}
