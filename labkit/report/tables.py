"""The summary as a rich table for the terminal and as markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from labkit.report.summary import Cell, Group, Line, Summary, headline, summarize
from labkit.results.frames import wide_row
from labkit.results.schema import RunDocument
from labkit.results.units import format_value

# a terminal has about a hundred columns; the page and the markdown show these too
_PAGE_ONLY = frozenset({"steps_per_s_p50", "roofline_share", "load_s", "vram_peak_bytes", "dnsmos_ovrl_mean"})
_TONES = {"": "", "better": "green", "worse": "red", "unsure": "yellow", "missing": "dim"}
_STATUS_STYLES = {"ok": "green", "unavailable": "yellow"}


def summary_table(
    documents: Sequence[RunDocument], *, baseline: str | None = None, with_ids: bool = False
) -> RenderableType:
    """What a command prints after runs: one table per comparable group, and why any run has no numbers.

    `with_ids` lists every document by its id, reruns too, instead of the latest of each.
    """
    if not documents:
        return Text("no runs are recorded here; `labkit run torch-fp32` makes one", style="dim")
    if with_ids:
        return _id_table(documents)
    summary = summarize(documents, baseline=baseline)
    parts: list[RenderableType] = [_group_table(summary, group) for group in summary.groups]
    parts += [_why(line) for line in summary.lines if line.document.failure]
    return Stack(*parts, Text(headline(summary)))


def markdown_table(documents: Sequence[RunDocument], *, baseline: str | None = None) -> str:
    """The same tables as GitHub markdown."""
    summary = summarize(documents, baseline=baseline)
    heads = ["recipe", "status", *(summary.heading(column) for column in summary.columns)]
    parts = [headline(summary)] if summary.lines else ["No runs are recorded here."]
    for group in summary.groups:
        rows = [[line.recipe, line.status, *(cell.text for cell in line.cells)] for line in group.lines]
        table = ["| " + " | ".join(map(_escape, row)) + " |" for row in [heads, *rows]]
        table.insert(1, "|---|---|" + "---:|" * len(summary.columns))
        parts.append(f"**{group.title}**\n\n" + "\n".join(table))
    parts += [f"`{line.recipe}`: {_escape(_reason(line))}" for line in summary.lines if line.document.failure]
    return "\n\n".join(parts) + "\n"


def _group_table(summary: Summary, group: Group) -> Table:
    table = Table(title=group.title, title_justify="left", header_style="bold", title_style="bold")
    table.add_column("recipe", no_wrap=True)
    table.add_column("status")
    shown = [place for place, column in enumerate(summary.columns) if column not in _PAGE_ONLY]
    for place in shown:
        table.add_column(summary.heading(summary.columns[place]), justify="right")
    for line in group.lines:
        table.add_row(line.recipe, _status(line.document), *(_rich(line.cells[place]) for place in shown))
    return table


def _id_table(documents: Sequence[RunDocument]) -> Table:
    table = Table(header_style="bold")
    for name in ("run id", "sweep", "recipe", "voice", "scenario", "status", "RTF"):
        table.add_column(name, overflow="fold", justify="right" if name == "RTF" else "left")
    for document in documents:
        rtf = wide_row(document).numbers.get("rtf_p50")
        table.add_row(
            document.run_id, document.sweep or "", document.spec.recipe.name, document.spec.voice,
            document.spec.scenario, _status(document), format_value("rtf_p50", rtf),
        )  # fmt: skip
    return table


def _status(document: RunDocument) -> Text:
    return Text(document.status, style=_STATUS_STYLES.get(document.status, "bold red"))


def _rich(cell: Cell) -> Text:
    return Text(cell.text, style=_TONES[cell.tone])


def _why(line: Line) -> Text:
    return Text(
        f"{line.recipe}: {_reason(line)}", style="yellow" if line.document.status == "unavailable" else "red"
    )


def _reason(line: Line) -> str:
    failure = line.document.failure
    if failure is None:
        return ""
    where = f" ({failure.stage})" if failure.stage else ""
    return f"{line.status}{where}: {failure.message} {failure.remedy}".rstrip()


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
