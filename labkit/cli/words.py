"""How commands talk: two consoles, shared options, tables, JSON, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from labkit.results.schema import RunDocument

console = Console()
notes = Console(stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON value for machines.")]
RecipesOption = Annotated[
    list[Path] | None, typer.Option("--recipes", help="YAML file with recipes of your own (repeatable).")
]
StoreOption = Annotated[
    Path | None, typer.Option("--results", help="Results folder (default: LABKIT_RESULTS or ./results).")
]


def progress_lines(quiet: bool) -> Callable[[str], None]:
    """One line per step: it reads the same in a terminal and in a log."""
    return (
        (lambda line: None)
        if quiet
        else (lambda line: notes.print(escape(line), highlight=False, soft_wrap=True))
    )


def print_summary(
    documents: list[RunDocument], *, baseline: str | None = None, with_ids: bool = False
) -> None:
    from labkit.report import summary_table

    console.print(summary_table(documents, baseline=baseline, with_ids=with_ids))


def print_rows(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """A table; cells are shown as they are, `[uv_break]` too, and styled where they are rich's `Text`.

    Columns that all lack a name get no line for names.
    """
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False,
                  show_header=any(columns))  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else escape(str(cell)) for cell in row))
    console.print(table)


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False, default=str)
    sys.stdout.write("\n")


def show_warning(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
    notes.print(f"[yellow]warning[/]: {escape(str(message))}", highlight=False, soft_wrap=True)
