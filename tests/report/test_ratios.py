"""Two runs side by side: every shared metric, paired by text, or the reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import UserError
from labkit.report import compare_runs
from labkit.results.store import Store
from tests.results.factory import document, failed


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    for scenario in ("replay", "single"):
        for name in ("torch-fp32", "ort-fp32"):
            store.write(document(name, scenario=scenario))
    store.write(failed("torch-bf16"))
    return store


def test_recipes_are_compared_in_every_scenario_they_share(store: Store) -> None:
    frame = compare_runs(store, "torch-fp32", "ort-fp32")
    assert set(frame["scenario"]) == {"replay", "single"}
    rtf = frame[(frame.metric == "RTF") & (frame.scenario == "replay")].iloc[0]
    assert rtf["verdict"] == "better"
    assert float(rtf["change"].removesuffix("x")) == pytest.approx(1 / 1.8, rel=0.1)
    assert " to " in rtf["interval"]
    assert {"P808", "WER", "peak memory", "on disk", "step"} <= set(frame["metric"])
    assert "log-mel" not in set(frame["metric"])


def test_runs_are_compared_by_id_and_unlike_runs_are_refused(store: Store) -> None:
    ids = {(d.spec.recipe.name, d.spec.scenario): d.run_id for d in store.documents()}
    same = compare_runs(store, ids["torch-fp32", "replay"], ids["ort-fp32", "replay"])
    assert set(same["scenario"]) == {"replay"}
    unlike = compare_runs(store, ids["torch-fp32", "replay"], ids["ort-fp32", "single"])
    assert unlike["verdict"].tolist() == ["not comparable"]
    assert "scenario differs" in unlike["why"][0]


def test_a_name_that_is_neither_run_nor_recipe_lists_what_there_is(store: Store) -> None:
    with pytest.raises(UserError, match=r"'torch-bf16' is neither.*ort-fp32, torch-fp32"):
        compare_runs(store, "torch-fp32", "torch-bf16")


def test_recipes_without_common_work_are_refused(store: Store) -> None:
    store.write(document("alone", scenario="stream"))
    with pytest.raises(UserError, match="no scenario"):
        compare_runs(store, "torch-fp32", "alone")
