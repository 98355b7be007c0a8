"""The gate from end to end on invented scores: what passes, what fails, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from labkit.errors import LabError, SpecError, UserError
from labkit.gate import gating, measuring
from labkit.gate.baseline import Baseline, Costs
from labkit.gate.gating import NotComparableError, gate
from labkit.gate.spec import REFERENCE
from labkit.report.gate_result import GateResult
from labkit.results.store import Store
from labkit.spec import Recipe, StageChoice, default_recipes
from tests.gate.factory import MACHINE, FakeProbes, baseline, costs, gate_spec

RECIPES = default_recipes() | {"hurt": Recipe(name="hurt", gpt=StageChoice(options={"round_bits": 3}))}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GateResult]:
    """Run a gate with fake probes and, when given, fake costs; public attribute `probes`."""
    monkeypatch.setattr(gating, "machine_class", lambda environment: MACHINE)

    def go(
        *,
        change: dict[str, dict[str, float]] | None = None,
        broken: dict[str, str] | None = None,
        base: dict[str, Any] | None = None,
        head_costs: dict[str, Costs] | None = None,
        spec: dict[str, Any] | None = None,
        own_scorer: str = "",
        unscored: tuple[str, ...] = (),
        broken_free: dict[str, list[str]] | None = None,
        **options: Any,
    ) -> GateResult:
        go.probes = FakeProbes(change, broken, own_scorer, unscored, broken_free)  # type: ignore[attr-defined]
        monkeypatch.setattr(measuring, "probe", go.probes)  # type: ignore[attr-defined]
        monkeypatch.setattr(gating, "measure_costs", lambda *args: head_costs or {})
        recorded = baseline(tmp_path / "base", **(base or {}))
        recorded = options.pop("recorded", recorded)
        return gate(
            gate_spec(**(spec or {})),
            recorded,
            recipes=RECIPES,
            store=Store(mkdtemp(dir=tmp_path)),
            **options,
        )

    return go


def outcomes(result: GateResult, recipe: str) -> dict[str, str]:
    return {line.verdict.metric: line.verdict.outcome for line in result.lines if line.recipe == recipe}


def test_an_unchanged_voice_passes(run: Callable[..., GateResult]) -> None:
    result = run()
    assert (result.overall.outcome, result.overall.exit_code) == ("pass", 0), outcomes(result, "ort-fp32")
    assert {line.recipe for line in result.lines} == {"torch-fp32", "ort-fp32"}
    assert {line.family for line in result.lines} == {"tier0", "tier1", "tier2"}
    assert "speed: the baseline has no costs of these recipes" in result.notes


def test_the_reference_speaks_first_and_the_others_are_fed_its_tokens(run: Callable[..., GateResult]) -> None:
    run(spec={"tiers": (0, 1, 2, 3)})
    asked = run.probes.asked  # type: ignore[attr-defined]
    assert [(ask.recipe.name, ask.part) for ask in asked] == [
        ("torch-fp32", "forced"), ("ort-fp32", "forced"), ("torch-fp32", "free"), ("ort-fp32", "free"),
        ("torch-fp32", "free"),
    ]  # fmt: skip
    assert asked[0].reference is None and asked[1].reference.recipe.name == REFERENCE
    assert asked[0].anchors is not None and list(asked[0].anchors) == list(asked[1].anchors)
    assert asked[4].seeds == (1001, 1002)


def test_a_damaged_recipe_fails_and_its_worst_sentences_are_heard(run: Callable[..., GateResult]) -> None:
    result = run(
        change={"hurt": {"kl": 0.05, "hidden_error": 0.15, "top1": -0.2}}, spec={"recipe": ("hurt",)}
    )
    assert result.overall.exit_code == 1
    found = outcomes(result, "hurt")
    assert {found[name] for name in ("kl", "hidden_error", "top1")} == {"fail"}
    assert found["log_mel_db"] == "pass"
    assert [clip.recipe for clip in result.clips] == ["hurt"] * 3
    assert len({clip.item for clip in result.clips}) == 3
    worst = next(
        line for line in result.lines if line.recipe == "hurt" and line.verdict.metric == "hidden_error"
    )
    assert result.clips[0].item == worst.verdict.worst_items(1)[0][0]
    labels = {label for label, _, _ in result.clips[0].scores}
    assert {"KL from the reference", "log-mel", "P808"} <= labels


def test_a_recipe_that_the_baseline_does_not_know_is_held_to_the_reference(
    run: Callable[..., GateResult],
) -> None:
    result = run(spec={"recipe": ("hurt",)})
    assert {line.base for line in result.lines if line.recipe == "hurt"} == {REFERENCE}
    assert {line.base for line in result.lines if line.recipe == REFERENCE} == {REFERENCE}


def test_a_reference_that_drifted_fails(run: Callable[..., GateResult]) -> None:
    result = run(change={REFERENCE: {"hidden_error": 0.2, "log_mel_db": 3.0}})
    found = outcomes(result, REFERENCE)
    assert (found["hidden_error"], found["log_mel_db"], result.overall.exit_code) == ("fail", "fail", 1)


def test_free_speech_that_got_worse_fails(run: Callable[..., GateResult]) -> None:
    result = run(change={"ort-fp32": {"dnsmos_p808": -0.6}}, spec={"tiers": (0, 3)})
    assert outcomes(result, "ort-fp32")["dnsmos_p808"] == "fail" and result.overall.exit_code == 1


@pytest.mark.parametrize(("broken", "outcome", "code"), [(2, "pass", 0), (3, "fail", 1)])
def test_a_few_clips_may_break_by_chance_when_they_are_spoken_freely(
    run: Callable[..., GateResult], tmp_path: Path, broken: int, outcome: str, code: int
) -> None:
    recorded: Baseline = baseline(tmp_path / "b")
    for item in list(recorded.about.items)[: 3 - broken]:  # the head is well: what the base lacks is no loss
        recorded.scores["ort-fp32"]["tier3"]["valid"][item] = [0.0, 1.0]
    lost = list(recorded.about.items)[-broken:]
    result = run(recorded=recorded, broken_free={"ort-fp32": lost}, spec={"tiers": (0, 3)})
    (line,) = [
        each for each in result.lines if each.verdict.metric == "valid_free" and each.recipe == "ort-fp32"
    ]
    assert (line.verdict.outcome, line.verdict.warned, result.overall.exit_code) == (outcome, True, code)


def test_what_the_a_a_arm_fails_nothing_else_can_fail(run: Callable[..., GateResult]) -> None:
    lost = {"dnsmos_p808": -0.6}
    result = run(change={"ort-fp32": lost, "arm": lost}, spec={"tiers": (0, 3)})
    assert [line.verdict.outcome for line in result.arm if line.verdict.metric == "dnsmos_p808"] == ["fail"]
    assert outcomes(result, "ort-fp32")["dnsmos_p808"] == "inconclusive"
    assert result.overall.exit_code == 3
    assert any("A/A arm" in reason for line in result.lines for reason in line.verdict.reasons)


def test_a_recipe_that_falls_over_is_a_regression(run: Callable[..., GateResult]) -> None:
    result = run(broken={"ort-fp32": "failed"})
    (line,) = [line for line in result.lines if line.verdict.metric == "runs"]
    assert result.overall.exit_code == 1 and "it fell over" in line.verdict.reasons[0]


def test_one_that_this_machine_cannot_run_is_not_comparable(run: Callable[..., GateResult]) -> None:
    result = run(broken={"ort-fp32": "unavailable"})
    assert outcomes(result, "ort-fp32") == {"runs": "not comparable"}
    assert result.overall.exit_code == 3


def test_without_the_reference_there_is_no_gate(run: Callable[..., GateResult]) -> None:
    with pytest.raises(LabError, match=r"reference recipe torch-fp32 cannot speak.*fell over"):
        run(broken={REFERENCE: "failed"})


def test_too_few_sentences_decide_nothing(run: Callable[..., GateResult]) -> None:
    result = run(spec={"texts": 6})
    assert outcomes(result, "ort-fp32")["kl"] == "inconclusive" and result.overall.exit_code == 3
    assert run(spec={"texts": 6}, inconclusive_ok=True).overall.exit_code == 0


@pytest.mark.parametrize("change", [{"weights_hash": "0" * 64}, {"corpus_hash": "1" * 64}])
def test_a_baseline_of_something_else_stops_before_any_work(
    run: Callable[..., GateResult], change: dict
) -> None:
    with pytest.raises(NotComparableError, match="not comparable") as found:
        run(base=change)
    assert found.value.exit_code == 2 and not run.probes.asked  # type: ignore[attr-defined]


def test_a_score_of_another_scorer_is_not_compared(run: Callable[..., GateResult]) -> None:
    result = run(base={"scorers": {"dnsmos_p808": "s 0"}}, change={"ort-fp32": {"dnsmos_p808": -2.0}})
    (line,) = [
        line for line in result.lines if (line.recipe, line.verdict.metric) == ("ort-fp32", "dnsmos_p808")
    ]
    assert line.verdict.outcome == "not comparable" and "s 0 in the baseline" in line.verdict.reasons[0]
    assert result.overall.exit_code == 0  # its scorer is an extra


def test_the_reference_s_fingerprint_needs_no_scorer_of_the_panel(run: Callable[..., GateResult]) -> None:
    result = run(base={"scorers": {"log_mel_db": "log_mel 1"}}, own_scorer="torch-fp32")
    assert outcomes(result, "torch-fp32")["log_mel_db"] == "pass"
    assert outcomes(result, "ort-fp32")["log_mel_db"] == "not comparable"


def test_a_required_metric_that_was_not_scored_keeps_the_gate_from_passing(
    run: Callable[..., GateResult],
) -> None:
    result = run(unscored=("kl", "log_mel_db"))
    missing = {
        (line.recipe, line.verdict.metric): line.verdict
        for line in result.lines
        if line.word == "not comparable"
    }
    assert set(missing) == {("ort-fp32", "kl"), ("ort-fp32", "log_mel_db"), ("torch-fp32", "log_mel_db")}
    assert "what was measured has no kl: add its scorer" in missing["ort-fp32", "kl"].reasons[0]
    assert (result.overall.outcome, result.overall.exit_code) == ("inconclusive", 3)


def test_a_required_metric_that_the_baseline_lacks_keeps_the_gate_from_passing(
    run: Callable[..., GateResult], tmp_path: Path
) -> None:
    recorded: Baseline = baseline(tmp_path / "b")
    for tiers in recorded.scores.values():
        del tiers["tier0"]["valid"]
    result = run(recorded=recorded)
    (line,) = [line for line in result.lines if (line.recipe, line.verdict.metric) == ("ort-fp32", "valid")]
    assert line.verdict.outcome == "not comparable" and result.overall.exit_code == 3
    assert "the baseline has no valid: record the baseline with it" in line.verdict.reasons[0]


def test_an_extra_that_the_baseline_has_and_the_head_has_not_is_named(run: Callable[..., GateResult]) -> None:
    result = run(unscored=("dnsmos_p808",))
    assert outcomes(result, "ort-fp32")["dnsmos_p808"] == "not comparable"
    assert "dnsmos_ovrl" not in outcomes(result, "ort-fp32")  # neither side was asked for it
    assert result.overall.exit_code == 0


def test_costs_that_no_process_gave_are_not_comparable(run: Callable[..., GateResult]) -> None:
    result = run(base={"costs": {"ort-fp32": costs(1.0, 10)}})
    speed = {line.verdict.metric: line.verdict.outcome for line in result.lines if line.family == "speed"}
    assert set(speed.values()) == {"not comparable"} and "cpu_s" in speed
    assert result.overall.exit_code == 3


def test_speed_is_judged_on_a_machine_of_the_baseline_s_class(
    run: Callable[..., GateResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = {"costs": {"ort-fp32": costs(1.0, 10)}}
    slower = run(base=base, head_costs={"ort-fp32": costs(1.2, 5)})
    assert outcomes(slower, "ort-fp32")["cpu_yardsticks"] == "fail" and slower.overall.exit_code == 1
    same = run(base=base, head_costs={"ort-fp32": costs(1.0, 5)})
    assert outcomes(same, "ort-fp32")["cpu_yardsticks"] == "pass" and same.overall.exit_code == 0
    assert {line.verdict.metric: line.verdict.gates for line in same.lines if line.family == "speed"} == {
        "cpu_yardsticks": True, "cpu_s": False, "latency_s": False, "rss_peak_bytes": True, "steps": True,
    }  # fmt: skip
    more = costs(1.0, 5)
    more = more.model_copy(update={"steps": {**more.steps, "b": 51.0}})
    assert outcomes(run(base=base, head_costs={"ort-fp32": more}), "ort-fp32")["steps"] == "fail"
    monkeypatch.setattr(gating, "machine_class", lambda environment: "another")
    elsewhere = run(base=base, head_costs={"ort-fp32": costs(1.2, 5)})
    assert elsewhere.overall.exit_code == 0 and "another machine class" in elsewhere.notes[0]


def test_yardsticks_of_another_version_are_not_compared(run: Callable[..., GateResult]) -> None:
    head = costs(1.2, 5).model_copy(update={"yardstick": 2})
    result = run(base={"costs": {"ort-fp32": costs(1.0, 10)}}, head_costs={"ort-fp32": head})
    (verdict,) = [line.verdict for line in result.lines if line.verdict.metric == "cpu_yardsticks"]
    assert verdict.outcome == "not comparable" and "labkit baseline time" in verdict.reasons[0]
    assert outcomes(result, "ort-fp32")["cpu_s"] == "fail" and result.overall.exit_code != 1  # seconds inform


def test_a_pipeline_and_a_voice_of_noise_are_refused(run: Callable[..., GateResult], tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="pipeline"):
        run(spec={"recipe": ("upstream",)})
    with pytest.raises(UserError, match="unknown"):
        run(spec={"recipe": ("ort-fp23",)})


def test_tiers_that_the_baseline_lacks_are_not_comparable(
    run: Callable[..., GateResult], tmp_path: Path
) -> None:
    recorded: Baseline = baseline(tmp_path / "b")
    short = {
        name: {f: s for f, s in tiers.items() if f != "tier3"} for name, tiers in recorded.scores.items()
    }
    result = run(recorded=replace(recorded, scores=short), spec={"tiers": (0, 3)})
    assert {line.verdict.outcome for line in result.lines if line.family == "tier3"} == {"not comparable"}
    assert result.overall.exit_code in (2, 3)
