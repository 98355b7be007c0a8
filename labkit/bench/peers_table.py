"""The figures of `bench peers` as tables: on the terminal, and as markdown for a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from labkit.bench.peers import SOUND, THREADS, TITLES
from labkit.bench.table import DASH, number, ratio, share, significant, targets_table

Figures = dict[str, Any]
WIDE = 104  # columns of a terminal that shows every column of a table
_UNITS = ("roof", "load s", "build s", "RSS MB", "disk MB")
_EXTRA = ("load s", "build s", "disk MB")  # what a narrow one leaves to the files


@dataclass(frozen=True)
class _Sheet:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    missing: list[str]
    """Why an arm has no figures."""


def render_peers(figures: Figures, width: int = WIDE) -> Group:
    """A table for each race, then what was to be reached. Fewer columns where the terminal is not `WIDE`."""
    hidden = () if width >= WIDE else _EXTRA
    return Group(
        *(_table(_sheet(name, race), hidden) for name, race in figures["races"].items()),
        targets_table(figures),
    )


def peers_markdown(figures: Figures) -> str:
    """The same as text for a log."""
    parts = [f"{figures['machine']}; voice `{figures['voice']}`."]
    for name, race in figures["races"].items():
        sheet = _sheet(name, race)
        missing = [f"* {' '.join(words.split())}" for words in sheet.missing]
        parts += [f"**{sheet.title}**", _grid(sheet.columns, sheet.rows), "\n".join(missing)]
    words = {True: "met", False: "missed", None: "not measured"}
    reached = [
        (target["name"], target["wanted"], significant(target["reached"]), words[target["met"]])
        for target in figures["targets"]
    ]
    parts.append(_grid(("to reach at full size", "wanted", "reached", ""), reached))
    return "\n\n".join(filter(None, parts)) + "\n"


def _sheet(name: str, race: Figures) -> _Sheet:
    rows: list[tuple[str, ...]] = []
    missing = [race["reason"]] if "reason" in race else []
    columns = ("arm", "ms", "x one thread" if name == THREADS else "x upstream", *_UNITS)
    for arm, row in race.get("arms", {}).items():
        if "network_cpu_s" not in row:
            rows.append((arm, *[DASH] * (len(columns) - 1)))
            missing.append(f"{arm}: {row['reason']}")
            continue
        builds = [row[part] for part in ("build_s", "compile_s") if row.get(part) is not None]
        rows.append(
            (
                arm,
                number(row[race["clock"]], 1e3),
                ratio(row.get("speedup")),
                share(row),
                number(row.get("load_s"), 1),
                number(sum(builds) if builds else None, 1),
                number(row.get("rss_run_peak_bytes"), 1e-6, 0),
                number(row.get("size_on_disk_bytes"), 1e-6, 0),
            )
        )
    return _Sheet(_title(name, race), columns, rows, missing)


def _title(name: str, race: Figures) -> str:
    """What was done, the unit of the times, and the reading speed that shares are taken of."""
    if "arms" not in race:
        return f"{TITLES[name]}: nothing measured"
    kind = "CPU" if race["clock"] == "network_cpu_s" else "wall"
    work = f"{race['length']} steps of speech" if name == SOUND else f"context {race['length']}"
    title = f"{TITLES[name]}: {work}, {race['rounds']} rounds of {race['takes']}, {kind} ms"
    speeds = [
        row["bandwidth_bytes_per_s"] / 1e9
        for row in race["arms"].values()
        if row.get("bandwidth_bytes_per_s")
    ]
    return title + (f"; memory read at {min(speeds):.0f} to {max(speeds):.0f} GB/s" if speeds else "")


def _table(sheet: _Sheet, hidden: Sequence[str]) -> Table:
    table = Table(
        title=sheet.title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )
    shown = [i for i, column in enumerate(sheet.columns) if column not in hidden]
    for i in shown:
        table.add_column(sheet.columns[i], justify="right" if i else "left", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*(row[i] for i in shown))
    table.caption = escape("\n".join(sheet.missing)) or None
    table.caption_justify = "left"
    return table


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ("---", *["---:"] * (len(columns) - 1))
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rule, *rows))
