"""The page of what was found, and how it gets into a document."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.compare.margins import Margin
from labkit.compare.verdicts import Verdict
from labkit.errors import UserError
from labkit.faults.conditions import CONDITIONS
from labkit.faults.drawing import Tally
from labkit.faults.findings import RULES, Movement
from labkit.faults.running import Effort, Findings, write_findings
from labkit.faults.speeds import SpeedFindings, SpeedRates
from labkit.faults.tables import BEGIN, END, insert, page, surprises

KL = Margin("kl", "paired", "lower", 0.003, 0.01, 10, ideal=0)


def findings(missed: str = "", wolf: str = "") -> Findings:
    """All faults found by their KL and no null, but for one of each."""
    judged = [each for each in CONDITIONS.values() if each.role != "base"]
    bad = {each.name for each in judged if each.role == "fault" and each.name != missed} | {wolf}
    verdicts = {
        each.name: {
            "tier1": {
                "kl": Verdict(KL, "fail" if each.name in bad else "pass", change=0.05, n=24, n_needed=10)
            }
        }
        for each in judged
    }
    shares = dict.fromkeys(RULES, 0.5)
    rates = SpeedRates(0.15, 400, {"fail": 1.0, "pass": 0.0, "inconclusive": 0.0}, shares, shares)
    return Findings(
        facts={"voice": "nano (abc)", "machine": "a machine"},
        effort=Effort(),
        verdicts=verdicts,
        moved={each.name: {"plcmos": Movement(-0.3, 0.2, 24, 8)} for each in judged},
        forced={"block-int3": dict.fromkeys(("kl", "total_variation", "top1", "nll_delta", "hidden_error"), 0.25)},
        alarms={each.name: {rule: ["nll"] if each.role == "fault" else [] for rule in RULES} for each in judged},
        fed_gates=Tally(100, 0, Counter({"pass": 100}), Counter(), Counter({"asv": 3})),
        free_gates=Tally(1000, 4, Counter({"pass": 990, "fail": 10}), Counter({"valid": 10}), Counter()),
        speed={"torch-fp32": SpeedFindings([rates], rates, 0.148, 0.013, 0.031, 0.98)},
        memory=Verdict(KL, "fail", change=0.2, base=4e8),
    )  # fmt: skip


def test_the_page_has_a_row_for_every_condition() -> None:
    text = page(findings())
    for each in CONDITIONS.values():
        assert each.role == "base" or f"| {each.words} |" in text
    assert (
        "tier 1, `kl`" in text and "-0.30 [8]" in text and "+14.8 %" in text and "+20.0 % of 400 MB" in text
    )
    assert "| tiers 0 to 2 | 100 | 0 | 0 | 100 | — | 3 | 0 | 0 |" in text
    assert "| tier 3, other seeds | 1000 | 10 (4) | 0 | 990 | valid 10 | 0 | 0 | 0 |" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = {line.count("|") for line in tables}
    assert len(tables) > 40 and all(count > 4 for count in widths)


def test_the_words_count_what_was_run() -> None:
    text = page(replace(findings(), effort=Effort(sentences=12, seeds=8, base_processes=15, timings=70)))
    assert "freely with 8 seeds, 96 clips" in text and "no more than 2 of them" in text
    assert (
        "of each recipe 15 as they are, 5 with a real busy loop that burns 15 % of" in text
        and "percent of 70 experiments" in text
    )
    assert "medians of `torch-fp32` spread by 1.3 % (standard deviation), in seconds by 3.1 %." in text
    assert "busy:" not in text and "Without any score" not in text


def test_a_busy_machine_and_missing_scorers_are_said() -> None:
    busy = {name: replace(each, core_share=0.61) for name, each in findings().speed.items()}
    text = page(replace(findings(), speed=busy, unscored={"plcmos": "speechmos is not installed"}))
    assert "**The machine was busy:** half of the processes got 61 % of a core or less" in text
    assert "Without any score: PLCMOS (speechmos is not installed)." in text


def test_what_is_not_as_it_should_be_is_said() -> None:
    assert surprises(findings()) == []
    lines = surprises(findings(missed="tail-cut", wolf="int8"))
    assert len(lines) == 2
    assert lines[0].startswith("cried wolf: INT8") and lines[1] == "not found: 300 ms cut from the end"
    often = Tally(
        1000, 4, Counter({"fail": 15}), Counter(), Counter()
    )  # 11 of 1000 are more than one in a hundred
    assert surprises(replace(findings(), free_gates=often))[0].startswith(
        "cried wolf: 15 of 1000 gates of tier 3"
    )
    assert "**not found**" in page(findings(missed="tail-cut"))


def test_a_fault_that_too_few_sentences_were_asked_about_is_undecided() -> None:
    few = findings()
    few.verdicts["tail-cut"] = {"tier1": {"kl": Verdict(KL, "inconclusive", n=4, n_needed=10)}}
    row = next(line for line in page(few).splitlines() if line.startswith("| 300 ms cut"))
    assert row.split(" | ")[1] == "undecided"
    assert surprises(few) == ["not found: 300 ms cut from the end"]


def test_tables_replace_what_stands_between_the_marks(tmp_path: Path) -> None:
    document = tmp_path / "doc.md"
    document.write_text(f"# Head\n{BEGIN}\nyesterday\n{END}\ntail\n", encoding="utf-8")
    written = write_findings(findings(), tmp_path / "out", document)
    text = document.read_text(encoding="utf-8")
    assert (
        text.startswith(f"# Head\n{BEGIN}\n") and text.endswith(f"{END}\ntail\n") and "yesterday" not in text
    )
    assert written["markdown"].read_text(encoding="utf-8") in text
    assert '"fed_gates"' in written["json"].read_text(encoding="utf-8")


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    document = tmp_path / "doc.md"
    document.write_text(f"{END} {BEGIN}", encoding="utf-8")
    with pytest.raises(UserError, match=r"doc\.md must hold the lines"):
        insert(document, "new")
    assert document.read_text(encoding="utf-8") == f"{END} {BEGIN}"
    with pytest.raises(UserError, match="cannot be read"):
        insert(tmp_path / "none.md", "new")
