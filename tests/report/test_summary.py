"""Runs become comparable groups; a cell says what it means, and what is missing says why."""

from __future__ import annotations

import pytest

from labkit.report.summary import RATIO, Cell, Line, Summary, headline, quality_group, speed_group, summarize
from labkit.results.schema import Measures
from tests.results.factory import SPEED, TEXTS, document, failed, spec

NAMES = tuple(SPEED)


def line(summary: Summary, recipe: str) -> Line:
    [found] = [line for line in summary.lines if line.recipe == recipe]
    return found


def cell(summary: Summary, recipe: str, column: str) -> Cell:
    return line(summary, recipe).cells[summary.columns.index(column)]


def test_each_scenario_is_a_group_with_all_its_recipes() -> None:
    summary = summarize([document(name, scenario=s) for s in ("replay", "single") for name in NAMES])
    assert [(group.title, [line.recipe for line in group.lines]) for group in summary.groups] == [
        ("replay", list(NAMES)),
        ("single", list(NAMES)),
    ]
    assert speed_group(summary).scenario == "replay"
    assert quality_group(summary).scenario == "single"


def test_axes_that_vary_are_named() -> None:
    runs = [document(spec=spec(threads=threads)) for threads in (1, 2)]
    assert [group.title for group in summarize(runs).groups] == ["single · 1 thread", "single · 2 threads"]


def test_ratios_refer_to_the_baseline_with_an_interval() -> None:
    summary = summarize([document(name) for name in NAMES])
    assert summary.baseline == "torch-fp32"
    assert cell(summary, "torch-fp32", RATIO).text == "baseline"
    faster = cell(summary, "ort-int8-dynamic", RATIO)
    assert float(faster.text.removesuffix("x")) == pytest.approx(2.9, rel=0.1)
    assert faster.tone == "better"
    assert "95% interval" in faster.hint
    assert "3 texts" in faster.hint


def test_another_baseline_can_be_chosen() -> None:
    summary = summarize([document(name) for name in NAMES], baseline="ort-fp32")
    assert cell(summary, "torch-fp32", RATIO).tone == "worse"
    assert summary.heading(RATIO) == "vs ort-fp32"


def test_a_ratio_that_the_data_cannot_tell_from_one_carries_a_tilde() -> None:
    base, other = document("torch-fp32"), document("twin")
    factor = dict(zip(TEXTS, (0.8, 1.02, 1.25), strict=True))
    jittered = [
        sample.model_copy(
            update={"values": sample.values | {"rtf": sample.values["rtf"] * factor[sample.item]}}
        )
        for sample in base.samples
    ]
    found = cell(summarize([base, other.model_copy(update={"samples": tuple(jittered)})]), "twin", RATIO)
    assert found.text.startswith("~")
    assert found.tone == "unsure"


def test_runs_of_a_changed_voice_are_left_out_and_counted() -> None:
    old = [document(name, weights_hash="old") for name in NAMES]
    summary = summarize([*old, document("torch-fp32"), document("ort-fp32")])
    assert [line.recipe for line in summary.lines] == ["torch-fp32", "ort-fp32"]
    assert f"{len(NAMES)} of another version of voice nano" in summary.outdated


def test_another_machine_is_another_group() -> None:
    summary = summarize([document("torch-fp32"), document("ort-fp32", machine_class="elsewhere")])
    assert len(summary.groups) == 2
    assert cell(summary, "ort-fp32", RATIO).text == "—"


def test_missing_numbers_are_dashes_with_their_reason() -> None:
    bare = document(
        "ort-fp32", measures=Measures(values={"load_s": None}, reasons={"load_s": "not timed here"})
    )
    summary = summarize(
        [document("torch-fp32"), bare, failed("upstream", "unavailable", message="no environment")]
    )
    assert cell(summary, "ort-fp32", "load_s") == Cell("—", "not timed here", "missing")
    assert cell(summary, "ort-fp32", "rss_peak_bytes").hint == "not measured in this run"
    assert {c.text for c in line(summary, "upstream").cells} == {"—"}
    assert "no environment" in cell(summary, "upstream", "rtf_p50").hint


def test_columns_without_any_number_are_left_out_with_their_reason() -> None:
    summary = summarize([document("torch-fp32"), document("ort-fp32")])
    assert "dnsmos_p808_mean" in summary.columns
    assert summary.left_out == {
        "vram_peak_bytes": "the run used no GPU",
        "log_mel_db_mean": "a free-running clip has no reference",
    }
    assert not set(summary.left_out) & set(summary.columns)


def test_the_headline_speaks_of_the_table_with_the_most_runs() -> None:
    lone = document("torch-fp32", spec=spec(scenario="replay", voice="random"), weights_hash="r")
    summary = summarize([lone, *(document(name, scenario="replay") for name in NAMES)])
    assert len(summary.groups) == 2
    assert speed_group(summary).title == "nano · replay"


def test_the_headline_names_the_fastest_and_what_it_costs() -> None:
    words = headline(summarize([document(name, scenario=s) for s in ("replay", "single") for name in NAMES]))
    assert words.startswith("All 8 runs are ok. Fastest in replay: ort-int8-dynamic, RTF 0.06")
    assert "the speed of torch-fp32" in words
    assert "DNSMOS P808" in words


def test_the_headline_counts_what_did_not_run() -> None:
    assert headline(summarize([document(), failed("ort-fp32")])).startswith("1 of 2 runs are ok.")
    assert headline(summarize([failed("ort-fp32")])) == "None of 1 runs gave numbers; the table says why."


def test_no_runs_make_an_empty_summary() -> None:
    assert summarize([]).groups == ()
