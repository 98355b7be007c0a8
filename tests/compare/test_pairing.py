"""Which runs may be compared: unlike or unknown identities are named."""

from __future__ import annotations

import pandas as pd
import pytest

from labkit.compare import comparable
from labkit.results.schema import Failure, RunDocument
from labkit.spec import Recipe, RunSpec

LIKE = {
    "weights_hash": "w" * 64,
    "corpus_hash": "c" * 64,
    "scenario": "replay",
    "machine_class": "x86, 2 cores",
    "status": "ok",
}


def document(**changes: object) -> RunDocument:
    spec = RunSpec(recipe=Recipe(name="torch-fp32"), scenario=changes.pop("scenario", "replay"))  # type: ignore[arg-type]
    fields = {k: v for k, v in LIKE.items() if k != "scenario"} | changes
    return RunDocument(run_id="1", started_at="t", spec=spec, work_hash="h", environment={}, **fields)  # type: ignore[arg-type]


def test_like_runs_have_no_reasons() -> None:
    assert comparable(LIKE, dict(LIKE)) == []
    assert comparable(pd.Series(LIKE), document()) == []


@pytest.mark.parametrize(
    ("field", "words"),
    [("weights_hash", "weights"), ("corpus_hash", "corpus"), ("machine_class", "machine class")],
)
def test_each_difference_is_named(field: str, words: str) -> None:
    (reason,) = comparable(document(), document(**{field: "other"}))
    assert reason.startswith(f"the {words} differs") and "other" in reason


def test_scenario_and_status_count() -> None:
    failed = document(status="failed", failure=Failure(kind="E", message="m", stage=None), scenario="single")
    assert comparable(document(), failed) == [
        "the second run is failed",
        "the scenario differs: replay and single",
    ]


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_unknown_equals_nothing(unknown: object) -> None:
    one = LIKE | {"weights_hash": unknown}
    assert comparable(one, dict(one)) == ["the weights of a run is not known"]
