"""What is measured in which order, and how runs become costs."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path

import pytest

from labkit.errors import LabError, SpecError, UserError
from labkit.gate import measuring, recording
from labkit.gate.baseline import read_baseline, write_baseline
from labkit.gate.measuring import choose_recipes, costs_of, measure, measure_costs, scores_of
from labkit.gate.recording import record_baseline, time_baseline
from labkit.results.schema import RunDocument
from labkit.results.store import Store
from labkit.spec import RunSpec, default_recipes
from tests.gate.factory import FakeProbes, costs, document, gate_spec, scores
from tests.results.factory import TEXTS, failed
from tests.results.factory import document as run_document


def test_each_process_gives_one_number_from_all_its_sentences() -> None:
    documents = [run_document("ort-fp32") for _ in range(3)]
    found = costs_of(documents)
    assert set(found.cpu_s) == set(found.rss_peak_bytes) == {each.run_id for each in documents}
    samples = [s for s in documents[0].samples if s.phase == "measured" and s.item == TEXTS[0]]
    median = sorted(s.values["cpu_s"] or 0 for s in samples)[1]
    assert found.cpu_s[documents[0].run_id] > median  # of one sentence; the process's number is of all three
    assert found.steps == dict.fromkeys(TEXTS, 60.0)


def test_processes_of_all_recipes_take_turns_and_failures_cost_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    def run(spec: RunSpec, *, store: Path, sweep: str) -> RunDocument:
        order.append(spec.recipe.name)
        assert (spec.scenario, spec.texts, spec.quality, sweep) == ("replay", 4, False, "gate-try")
        return failed("ort-fp32") if spec.recipe.name == "ort-fp32" else run_document(spec.recipe.name)

    monkeypatch.setattr(import_module("labkit.run"), "run", run)
    told: list[str] = []
    recipes = [default_recipes()[name] for name in ("torch-fp32", "ort-fp32")]
    found = measure_costs(gate_spec(), recipes, 2, Store(tmp_path), told.append)
    assert order == ["torch-fp32", "ort-fp32"] * 2
    assert list(found) == ["torch-fp32"] and len(found["torch-fp32"].cpu_s) == 2
    assert sum("ort-fp32: failed" in line for line in told) == 2


def test_scores_go_to_the_family_they_are_judged_in() -> None:
    forced = document("x", "forced", scores(["a", "b"], 0, (0,), {}) + scores(["a", "b"], 1, (0,), {}))
    free = document("x", "free", scores(["a", "b"], 0, (2, 1), {}) + scores(["a", "b"], 3, (2, 1), {}))
    found = scores_of([forced, free])
    assert list(found) == ["tier0", "tier1", "tier3"]
    assert found["tier0"]["valid"] == {"a": [1.0], "b": [1.0]}
    assert len(found["tier3"]["wer"]["a"]) == 2 and found["tier3"]["valid"]["a"] == [1.0, 1.0]
    by_seed = {score.seed: score.value for score in free.scores if (score.metric, score.item) == ("wer", "a")}
    assert found["tier3"]["wer"]["a"] == [by_seed[1], by_seed[2]]  # in the order of the seeds


def test_tiers_decide_what_is_spoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes = FakeProbes()
    monkeypatch.setattr(measuring, "probe", probes)
    spec = gate_spec(tiers=(1,), texts=2)
    recipes, _ = choose_recipes(spec, default_recipes())
    measured = measure(spec, recipes, Store(tmp_path), lambda line: None, anchors=None, arm=True)
    assert measured.aa is None and not measured.free and len(measured.forced) == 2
    assert [ask.judged for ask in probes.asked] == [False, False]  # without tier 2 nothing is heard


def test_a_voice_that_is_replaced_meanwhile_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, hashes = FakeProbes(), iter("abc")

    def probe(*args: object) -> object:
        return fake(*args).model_copy(update={"work": {"weights": next(hashes)}})  # type: ignore[arg-type]

    monkeypatch.setattr(measuring, "probe", probe)
    spec = gate_spec(texts=2)
    recipes, _ = choose_recipes(spec, default_recipes())
    with pytest.raises(LabError, match=r"voice changed.*a, b.*again"):
        measure(spec, recipes, Store(tmp_path), lambda line: None, anchors=None, arm=False)


def test_a_recipe_that_nobody_knows_is_refused_before_any_work() -> None:
    with pytest.raises(SpecError, match="did you mean 'ort-fp32'"):
        choose_recipes(gate_spec(recipe=("ort-fp3",)), default_recipes())


def test_a_baseline_is_recorded_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "probe", FakeProbes(broken={"ort-fp32": "unavailable"}))
    with pytest.raises(LabError, match=r"recipe ort-fp32 is unavailable.*fell over"):
        record_baseline(
            "b", gate_spec(texts=2), recipes=default_recipes(), store=Store(tmp_path), speed=False
        )
    assert not (tmp_path / "baselines").exists()


def test_a_baseline_always_has_the_tiers_that_tokens_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "probe", FakeProbes())
    spec = gate_spec(tiers=(3,), texts=2)
    made = record_baseline("b", spec, recipes=default_recipes(), store=Store(tmp_path), speed=False)
    assert made.about.gate.tiers == (0, 1, 2, 3) and list(made.anchors) == list(made.about.items)
    assert set(made.scores["ort-fp32"]) == {"tier0", "tier1", "tier2", "tier3"}


def test_costs_alone_are_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "probe", FakeProbes())
    spec, store = gate_spec(texts=2), Store(tmp_path)
    made = record_baseline("b", spec, recipes=default_recipes(), store=store, speed=False)
    monkeypatch.setattr(
        recording, "measure_costs", lambda gate, recipes, *_: {r.name: costs(1, 10) for r in recipes}
    )
    timed = time_baseline("b", store=store)
    read = read_baseline("b", tmp_path)
    assert set(read.about.costs) == set(made.scores) and read.about.costs == timed.about.costs
    assert read.scores.keys() == made.scores.keys() and read.about.recorded_at == made.about.recorded_at

    monkeypatch.setattr(recording, "measure_costs", lambda *_: {})
    with pytest.raises(LabError, match=r"ort-fp32.*could not be timed; nothing was changed"):
        time_baseline("b", store=store)
    assert read_baseline("b", tmp_path).about.costs == read.about.costs
    other = dataclasses.replace(made, about=made.about.model_copy(update={"weights_hash": "0" * 64}))
    write_baseline(other)
    with pytest.raises(UserError, match=r"cannot be timed: it is of another voice"):
        time_baseline("b", store=store)
