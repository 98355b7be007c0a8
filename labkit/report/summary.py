"""Runs as comparable groups of rows, every cell a text with a hint: what all tables and pages are made of.

It knows which columns matter. Which runs stand together is `alike`'s matter; numbers come from `labkit.results`,
ratios and their intervals from `labkit.compare`; drawing is left to the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from labkit.compare import Comparison
from labkit.report.alike import sort_runs
from labkit.report.cells import Cell, speed_cell, value_cell
from labkit.report.ratios import speed_against, speedup_words
from labkit.results.frames import WideRow, wide_frame, wide_row
from labkit.results.schema import RunDocument
from labkit.results.units import describe, format_value

DEFAULT_BASELINE = "torch-fp32"
RATIO = "against_baseline"
COLUMNS = (
    "rtf_p50", RATIO, "ttft_s_p50", "steps_per_s_p50", "roofline_share", "load_s", "rss_peak_bytes", "vram_peak_bytes",
    "size_on_disk_bytes", "dnsmos_p808_mean", "dnsmos_ovrl_mean", "wer_mean", "log_mel_db_mean",
)  # fmt: skip
STATUS_WORDS = {
    "ok": "ok",
    "failed": "failed",
    "oom": "out of memory",
    "timeout": "out of time",
    "unavailable": "unavailable here",
    "invalid": "invalid audio",
}


@dataclass(frozen=True)
class Line:
    """One run in a table: its cells in the order of the summary's columns."""

    document: RunDocument
    row: WideRow
    cells: tuple[Cell, ...]
    is_baseline: bool
    speed: Comparison | None

    @property
    def recipe(self) -> str:
        return self.document.spec.recipe.name

    @property
    def status(self) -> str:
        return STATUS_WORDS[self.document.status]

    def number(self, column: str) -> float | None:
        """A number of the wide row; None when it is missing."""
        return self.row.numbers.get(column)


@dataclass(frozen=True)
class Group:
    """Runs that may stand in one table: same work, another recipe."""

    title: str
    scenario: str
    lines: tuple[Line, ...]

    @property
    def wide(self) -> pd.DataFrame:
        return wide_frame([line.row for line in self.lines])

    @property
    def ok(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.document.status == "ok")


@dataclass(frozen=True)
class Summary:
    """All groups with their common columns; `baseline` is the recipe the ratios refer to, if any ran.

    `outdated`: a sentence about runs that are not shown, because voice, corpus or recipe have changed since.
    """

    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    baseline: str | None
    outdated: str = ""

    @property
    def left_out(self) -> dict[str, str]:
        """Columns that no run has a number for, with the first reason a run gives."""
        reasons: dict[str, str] = {}
        for line in self.lines:
            for column in COLUMNS:
                if column not in self.columns and column in line.row.reasons:
                    reasons.setdefault(column, line.row.reasons[column])
        return reasons

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for group in self.groups for line in group.lines)

    def heading(self, column: str) -> str:
        """What stands above a column."""
        return f"vs {self.baseline}" if column == RATIO else describe(column).label


def summarize(documents: Sequence[RunDocument], *, baseline: str | None = None) -> Summary:
    """Group the latest run of each piece of work, and compare each with the group's baseline.

    `baseline` defaults to `torch-fp32` where that recipe is among the runs.
    """
    sorted_runs = sort_runs(documents)
    shown = [document for table in sorted_runs.tables for document in table.documents]
    rows = {document.run_id: wide_row(document) for document in shown}
    recipes = list(dict.fromkeys(document.spec.recipe.name for document in shown))
    baseline = baseline or (DEFAULT_BASELINE if DEFAULT_BASELINE in recipes else None)
    columns = _columns(list(rows.values()), with_ratio=len(recipes) > 1 and baseline in recipes)
    groups = []
    for table in sorted_runs.tables:
        reference = next((d for d in table.documents if d.spec.recipe.name == baseline), None)
        lines = tuple(
            _line(document, rows[document.run_id], reference, columns) for document in table.documents
        )
        groups.append(Group(table.title, table.documents[0].spec.scenario, lines))
    return Summary(
        columns, tuple(groups), baseline if baseline in recipes else None, sorted_runs.outdated_words
    )


def headline(summary: Summary) -> str:
    """One or two sentences: how many ran, which recipe is the fastest, and what that costs in quality."""
    lines = summary.lines
    ok = [line for line in lines if line.document.status == "ok"]
    if not ok:
        return f"None of {len(lines)} runs gave numbers; the table says why."
    counted = (
        f"All {len(lines)} runs are ok."
        if len(ok) == len(lines)
        else f"{len(ok)} of {len(lines)} runs are ok."
    )
    group = speed_group(summary)
    timed = [line for line in group.ok if line.number("rtf_p50") is not None] if group else []
    if not timed:
        return counted
    best = min(timed, key=lambda line: line.number("rtf_p50") or 0.0)
    words = f"Fastest in {best.document.spec.scenario}: {best.recipe}, RTF {_text(best, 'rtf_p50')}"
    if best.speed and best.speed.improvement:
        words += f", {speedup_words(best.speed)} the speed of {summary.baseline}"
    return f"{counted} {words}.{_quality_words(summary, best.recipe)}"


def speed_group(summary: Summary) -> Group | None:
    """The group that speaks about speed: replay, where all recipes do the same steps, else any."""
    return _telling_group(summary, "replay")


def quality_group(summary: Summary) -> Group | None:
    """The group that speaks about quality: free-running clips, what a user would hear, else any."""
    return _telling_group(summary, "single")


def _telling_group(summary: Summary, scenario: str) -> Group | None:
    """Of the groups of a scenario, if it has any, the first of those with the most ok runs."""
    groups = [group for group in summary.groups if group.scenario == scenario] or summary.groups
    return max(groups, key=lambda group: len(group.ok), default=None)


def _columns(rows: list[WideRow], *, with_ratio: bool) -> tuple[str, ...]:
    """Columns that some row has a number for."""
    return tuple(
        column
        for column in COLUMNS
        if (with_ratio if column == RATIO else any(row.numbers.get(column) is not None for row in rows))
    )


def _line(
    document: RunDocument, row: WideRow, reference: RunDocument | None, columns: tuple[str, ...]
) -> Line:
    is_baseline = document is reference
    speed = speed_against(reference, document) if reference is not None and not is_baseline else None
    cells = tuple(
        speed_cell(speed, document, is_baseline=is_baseline)
        if column == RATIO
        else value_cell(document, row, column)
        for column in columns
    )
    return Line(document, row, cells, is_baseline, speed)


def _text(line: Line, column: str) -> str:
    return format_value(column, line.number(column))


def _quality_words(summary: Summary, recipe: str) -> str:
    """How the recipe's P808 differs from the baseline's, named as the proxy it is; nothing when either lacks it."""
    group = quality_group(summary)
    if group is None:
        return ""
    means = {line.recipe: line.number("dnsmos_p808_mean") for line in group.ok}
    mine, base = means.get(recipe), means.get(summary.baseline or "")
    if mine is None or base is None or recipe == summary.baseline:
        return ""
    return f" Its DNSMOS P808 in {group.scenario} is {mine:.2f} against {base:.2f}."
