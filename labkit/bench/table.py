"""The figures of `bench self` and `bench peers` as rich tables for people."""

from __future__ import annotations

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from labkit.bench.peers import SOUND, THREADS, TITLES

Figures = dict[str, Any]
_DASH = "—"


def render(figures: Figures) -> Group:
    """Steps, then targets."""
    return Group(_steps(figures), _targets(figures))


def _steps(figures: Figures) -> Table:
    table = Table(
        title=(
            f"one decode step, voice {figures['voice']}, context {figures['context']}, core {figures['core']}, "
            f"{figures['rounds']} interleaved rounds of {figures['steps']} steps; CPU ms of the network"
        ),
        title_justify="left",
        header_style="bold",
    )
    for column in (
        "recipe",
        "ms",
        "least ms",
        "x upstream",
        "with draw",
        "roofline",
        "load s",
        "peak RSS MB",
        "disk MB",
    ):
        table.add_column(column, justify="left" if column == "recipe" else "right")
    missing: list[str] = []
    for name, arm in figures["arms"].items():
        if "network_cpu_s" not in arm:
            table.add_row(name, *[_DASH] * 8)
            missing.append(f"{name}: {arm['reason']}")
            continue
        table.add_row(
            name,
            _number(arm["network_cpu_s"], 1e3),
            _number(arm["network_cpu_min_s"], 1e3),
            _ratio(arm.get("speedup")),
            _ratio(arm.get("speedup_with_draw")),
            _share(arm),
            _number(arm.get("load_s"), 1),
            _number(arm.get("rss_peak_bytes"), 1e-6, 0),
            _number(arm.get("size_on_disk_bytes"), 1e-6, 0),
        )
    table.caption = "\n".join(missing) or None
    return table


def render_peers(figures: Figures) -> Group:
    """A table for each race, then what was to be reached."""
    races = [_race(name, race) for name, race in figures["races"].items()]
    return Group(*races, _targets(figures))


def _race(name: str, race: Figures) -> Table:
    table = Table(
        title=_title(name, race), title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )
    against = "x one thread" if name == THREADS else "x upstream"
    for column in ("arm", "ms", against, "roof", "load s", "build s", "RSS MB", "disk MB"):
        wide = column in ("arm", against)
        table.add_column(column, justify="left" if column == "arm" else "right", no_wrap=wide)
    missing = [race["reason"]] if "reason" in race else []
    for arm, row in race.get("arms", {}).items():
        if "network_cpu_s" not in row:
            table.add_row(arm, *[_DASH] * (len(table.columns) - 1))
            missing.append(f"{arm}: {row['reason']}")
            continue
        builds = [row[part] for part in ("build_s", "compile_s") if row.get(part) is not None]
        table.add_row(
            arm,
            _number(row[race["clock"]], 1e3),
            _ratio(row.get("speedup")),
            _share(row),
            _number(row.get("load_s"), 1),
            _number(sum(builds) if builds else None, 1),
            _number(row.get("rss_run_peak_bytes"), 1e-6, 0),
            _number(row.get("size_on_disk_bytes"), 1e-6, 0),
        )
    table.caption = "\n".join(missing) or None
    table.caption_justify = "left"
    return table


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


def _targets(figures: Figures) -> Table:
    table = Table(title="what was to be reached at full size", title_justify="left", header_style="bold")
    for column in ("", "target", "wanted", "reached"):
        table.add_column(column)
    marks = {True: "[green]met[/]", False: "[red]missed[/]", None: "[yellow]not measured[/]"}
    for target in figures["targets"]:
        table.add_row(marks[target["met"]], target["name"], target["wanted"], _significant(target["reached"]))
    if reason := figures.get("nano", {}).get("reason"):
        table.caption = f"small figures: {reason}"
    return table


def _number(value: float | None, scale: float, digits: int = 1) -> str:
    return _DASH if value is None else f"{value * scale:.{digits}f}"


def _significant(value: float | None) -> str:
    return _DASH if value is None else f"{value:.3g}"


def _ratio(speedup: Figures | None) -> str:
    return (
        _DASH if speedup is None else f"{speedup['value']:.2f} [{speedup['low']:.2f}, {speedup['high']:.2f}]"
    )


def _share(arm: Figures) -> str:
    if arm.get("roofline_share") is None:
        return _DASH
    mark = " impossible" if arm["roofline_impossible"] else ""
    return f"{100 * arm['roofline_share']:.0f} %{mark}"
