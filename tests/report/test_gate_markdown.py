from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from labkit.compare import load_margins
from labkit.report.gate_markdown import cells, change_words, gate_markdown
from tests.report.gate_factory import gate_lines, gate_result


def test_regressions_come_first_and_passes_are_folded_away() -> None:
    text = gate_markdown(gate_result(damage=0.05))
    assert text.startswith("## Voice gate `smoke`: 🔴 fail")
    first = next(line for line in text.splitlines() if line.startswith("| hurt"))
    assert "🔴 fail" in first
    assert text.index("🔴 fail |") < text.index("⚪ inconclusive") < text.index("metrics pass</summary>")


def test_a_gate_without_damage_says_so_in_a_sentence() -> None:
    text = gate_markdown(gate_result())
    assert "inconclusive" in text.splitlines()[0]  # five sentences of DNSMOS decide nothing
    assert "5 paired items; 24 are the minimum" in text


def test_it_renders_as_tables_whatever_stands_in_the_cells() -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False, "html": True}).parse(
        gate_markdown(gate_result(damage=0.05))
    )
    rows = [token for token in tokens if token.type == "tr_open"]
    cells_of_rows = [token for token in tokens if token.type in ("td_open", "th_open")]
    assert len(rows) > 8 and len(cells_of_rows) == 10 * len(rows)


@pytest.mark.parametrize(
    ("metric", "change", "words"),
    [
        ("kl", -0.00001, "0.0000 nats"),
        ("kl", -0.0002, "−0.0002 nats"),
        ("dnsmos_p808", -0.001, "0.00"),
        ("dnsmos_p808", 0.02, "+0.02"),
        ("rss_peak_bytes", -0.0001, "0.0 %"),
        ("rss_peak_bytes", -0.013, "−1.3 %"),
    ],
)
def test_a_change_that_rounds_to_nothing_has_no_sign(metric: str, change: float, words: str) -> None:
    line = next(each for each in gate_lines() if each.verdict.metric == metric)
    assert change_words(line, change) == words


def test_changes_carry_sign_unit_and_limit() -> None:
    rows = {(line.recipe, line.verdict.metric): cells(line) for line in gate_lines(damage=0.05)}
    limits = load_margins()
    kl = rows["hurt", "kl"]
    assert kl[5].startswith("+0.05") and kl[5].endswith(" nats") and kl[7] == f"+{limits['kl'].fail:.4f} nats"
    top1 = rows["hurt", "top1"]
    assert top1[5].startswith("−20") and top1[7] == f"−{100 * limits['top1'].fail:.1f} %"
    assert rows["ort-fp32", "rss_peak_bytes"][5] == "0.0 %"
    assert rows["ort-fp32", "dnsmos_p808"][8] == "5 of 24"


def test_what_only_informs_is_not_called_a_failure() -> None:
    result = gate_result(damage=0.05)
    lines = tuple(replace(line, verdict=replace(line.verdict, gates=False)) for line in result.lines)
    text = gate_markdown(replace(result, lines=lines))
    assert "🔴 fail |" in gate_markdown(result) and "🔴 fail |" not in text and "🔵 informs |" in text
