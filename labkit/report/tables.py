"""The summary as a rich table for the terminal and as markdown for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Stack
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from labkit.report.noise import caution
from labkit.report.summary import RATIO, Cell, Group, Line, Summary, headline, summarize
from labkit.results.frames import wide_row
from labkit.results.schema import RunDocument
from labkit.results.units import format_value

# what a terminal shows, the first to be left out last; the page and the markdown show every column
_BY_IMPORTANCE = ("rtf_p50", RATIO, "dnsmos_p808_mean", "rss_peak_bytes", "wer_mean", "size_on_disk_bytes",
                  "ttft_s_p50", "log_mel_db_mean", "load_s", "steps_per_s_p50")  # fmt: skip
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
    parts: list[RenderableType] = [_GroupTable(summary, group) for group in summary.groups]
    parts += [_why(line) for line in summary.lines if line.document.failure]
    parts.append(Text(headline(summary)))
    if summary.outdated:
        parts.append(Text(summary.outdated, style="dim"))
    if words := caution(line.document for line in summary.lines):
        parts.append(Text(words, style="yellow"))
    return Stack(*parts)


def markdown_table(documents: Sequence[RunDocument], *, baseline: str | None = None) -> str:
    """The same tables as GitHub markdown."""
    summary = summarize(documents, baseline=baseline)
    heads = ["recipe", "status", *(summary.heading(column) for column in summary.columns)]
    parts = [headline(summary)] if summary.lines else ["No runs are recorded here."]
    if words := caution(line.document for line in summary.lines):
        parts.append(f"**{words}**")
    for group in summary.groups:
        rows = [[line.recipe, line.status, *(cell.text for cell in line.cells)] for line in group.lines]
        table = ["| " + " | ".join(map(_escape, row)) + " |" for row in [heads, *rows]]
        table.insert(1, "|---|---|" + "---:|" * len(summary.columns))
        parts.append(f"**{group.title}**\n\n" + "\n".join(table))
    parts += [f"`{line.recipe}`: {_escape(_reason(line))}" for line in summary.lines if line.document.failure]
    parts += [summary.outdated] if summary.outdated else []
    return "\n\n".join(parts) + "\n"


class _GroupTable:
    """One group with as many of its columns as the terminal is wide."""

    def __init__(self, summary: Summary, group: Group) -> None:
        self.summary, self.group = summary, group

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = [column for column in _BY_IMPORTANCE if column in self.summary.columns]
        table = self._table(shown)
        endless = options.update(max_width=10_000)  # within the real width every table claims to fit
        while len(shown) > 1 and Measurement.get(console, endless, table).maximum > options.max_width:
            shown.pop()
            table = self._table(shown)
        yield table

    def _table(self, shown: list[str]) -> Table:
        places = [place for place, column in enumerate(self.summary.columns) if column in shown]
        table = Table(
            title=self.group.title,
            title_justify="left",
            title_style="bold",
            header_style="bold",
            box=SIMPLE_HEAD,
        )
        table.add_column("recipe", no_wrap=True)
        table.add_column("status", no_wrap=True)
        for place in places:
            table.add_column(self.summary.heading(self.summary.columns[place]), justify="right", no_wrap=True)
        for line in self.group.lines:
            table.add_row(
                line.recipe, _status(line.document), *(_rich(line.cells[place]) for place in places)
            )
        return table


def _id_table(documents: Sequence[RunDocument]) -> Table:
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run id", no_wrap=True)  # it holds time and recipe, and is there to be copied
    for name in ("sweep", "voice", "scenario"):
        table.add_column(name, overflow="fold")
    table.add_column("status", no_wrap=True)
    table.add_column("RTF", justify="right", no_wrap=True)
    for document in documents:
        rtf = wide_row(document).numbers.get("rtf_p50")
        table.add_row(
            document.run_id, document.sweep or "", document.spec.voice, document.spec.scenario, _status(document),
            format_value("rtf_p50", rtf),
        )  # fmt: skip
    return table


def _status(document: RunDocument) -> Text:
    return Text(document.status, style=_STATUS_STYLES.get(document.status, "bold red"))


def _rich(cell: Cell) -> Text:
    return Text(cell.text, style=_TONES[cell.tone])


def _why(line: Line) -> Text:
    return Text(
        f"{line.recipe} · {line.document.spec.scenario}: {_reason(line)}",
        style="yellow" if line.document.status == "unavailable" else "red",
    )


def _reason(line: Line) -> str:
    failure = line.document.failure
    if failure is None:
        return ""
    where = f" ({failure.stage})" if failure.stage else ""
    message = failure.message.rstrip()
    end = "" if not failure.remedy or message.endswith((".", "!", "?")) else "."
    return f"{line.status}{where}: {message}{end} {failure.remedy}".rstrip()


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
