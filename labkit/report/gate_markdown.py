"""A gate's result as markdown for a pull request: the outcome, regressions first, everything else folded away."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from labkit.report.gate_result import FAMILIES, GateResult, Line, headline, reasons, value_words

MARKS = {
    "fail": "🔴 fail",
    "warn": "🟡 warn",
    "inconclusive": "⚪ inconclusive",
    "not comparable": "⚫ not comparable",
    "informs": "🔵 informs",
    "pass": "🟢 pass",
}
_COLUMNS = ("recipe", "tier", "metric", "base", "head", "change", "at worst", "limit", "N", "verdict")


def gate_markdown(result: GateResult) -> str:
    """The whole comment; GitHub's dialect."""
    lines = result.sorted_lines()
    open_ones = [line for line in lines if line.word != "pass"]
    parts = [
        f"## Voice gate `{result.name}`: {MARKS[result.overall.outcome]}",
        f"{headline(result)} Baseline `{result.baseline}`, {result.seconds:.0f} s.",
    ]
    if open_ones:
        parts.append(markdown_rows(open_ones))
    if notes := reasons(open_ones):
        parts.append("\n".join(f"* {_safe(reason)}" for reason in notes))
    passed = [line for line in lines if line.word == "pass"]
    if passed:
        parts.append(_folded(f"{len(passed)} metrics pass", markdown_rows(passed)))
    if result.arm:
        parts.append(
            _folded(
                "A/A arm: the reference with other seeds; it counts for nothing", markdown_rows(result.arm)
            )
        )
    facts = "\n".join(f"* {name}: {_safe(value)}" for name, value in result.facts)
    parts.append(_folded("What was compared", facts))
    parts += [f"_{_safe(note)}_" for note in result.notes]
    parts.append(
        "Changes are head minus base; costs are ratios less one. Scores are automatic proxies: no listener was asked."
    )
    return "\n\n".join(parts) + "\n"


def markdown_rows(lines: Iterable[Line]) -> str:
    """A table of verdicts."""
    rows = [cells(line) for line in lines]
    table = [_COLUMNS, ["---"] * len(_COLUMNS), *rows]
    return "\n".join("| " + " | ".join(_safe(cell) for cell in row) + " |" for row in table)


def cells(line: Line) -> Sequence[str]:
    """One verdict as text, in the order of the columns: base and head are means, the bound is the one that decides."""
    verdict = line.verdict
    of_base = (
        f"{line.recipe} (base: {line.base})"
        if line.base != line.recipe and line.base not in line.recipe
        else line.recipe
    )
    return (
        of_base,
        FAMILIES[line.family].partition(" · ")[0].lower(),
        line.label,
        value_words(line.unit, verdict.base),
        value_words(line.unit, verdict.head),
        change_words(line, verdict.change),
        change_words(line, verdict.bound),
        limit_words(line),
        f"{verdict.n}"
        + (f" of {verdict.n_needed}" if verdict.outcome == "inconclusive" and verdict.n_needed else ""),
        MARKS[line.word],
    )


def change_words(line: Line, change: float | None) -> str:
    """A change in the metric's unit, costs as a share, counts as they are; signed, unless it rounds to nothing."""
    if change is None:
        return "—"
    kind = line.verdict.margin.kind
    if kind in ("speed", "memory"):
        size = f"{100 * abs(change):.1f} %"
    elif kind == "count":
        return f"{change:g} new"
    else:
        size = value_words(line.unit, abs(change))
    sign = "" if not re.search("[1-9]", size) else "+" if change > 0 else "−"
    return sign + size


def limit_words(line: Line) -> str:
    """The failing margin, signed towards the worse."""
    margin = line.verdict.margin
    if not math.isfinite(margin.fail):
        return "never fails"
    return change_words(
        line, -margin.fail if margin.direction == "higher" and margin.kind == "paired" else margin.fail
    )


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _safe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
