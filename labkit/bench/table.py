"""The figures of `bench self` as rich tables for people, and the cells that `bench peers` shows in the same way."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape
from rich.table import Table

Figures = dict[str, Any]
DASH = "—"


def render(figures: Figures) -> Group:
    """Steps, then targets."""
    return Group(_steps(figures), targets_table(figures))


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
            table.add_row(name, *[DASH] * 8)
            missing.append(f"{name}: {arm['reason']}")
            continue
        table.add_row(
            name,
            number(arm["network_cpu_s"], 1e3),
            number(arm["network_cpu_min_s"], 1e3),
            ratio(arm.get("speedup")),
            ratio(arm.get("speedup_with_draw")),
            share(arm),
            number(arm.get("load_s"), 1),
            number(arm.get("rss_peak_bytes"), 1e-6, 0),
            number(arm.get("size_on_disk_bytes"), 1e-6, 0),
        )
    table.caption = escape("\n".join(missing)) or None
    return table


def targets_table(figures: Figures) -> Table:
    """What was to be reached, and what was."""
    table = Table(title="what was to be reached at full size", title_justify="left", header_style="bold")
    for column in ("", "target", "wanted", "reached"):
        table.add_column(column)
    marks = {True: "[green]met[/]", False: "[red]missed[/]", None: "[yellow]not measured[/]"}
    for target in figures["targets"]:
        table.add_row(marks[target["met"]], target["name"], target["wanted"], significant(target["reached"]))
    if reason := figures.get("nano", {}).get("reason"):
        table.caption = f"small figures: {reason}"
    return table


def number(value: float | None, scale: float, digits: int = 1) -> str:
    """In another unit, with so many decimals."""
    return DASH if value is None else f"{value * scale:.{digits}f}"


def significant(value: float | None) -> str:
    """Three digits."""
    return DASH if value is None else f"{value:.3g}"


def ratio(speedup: Figures | None) -> str:
    """With its interval."""
    return (
        DASH if speedup is None else f"{speedup['value']:.2f} [{speedup['low']:.2f}, {speedup['high']:.2f}]"
    )


def share(arm: Figures) -> str:
    """Of the roofline, in percent."""
    if arm.get("roofline_share") is None:
        return DASH
    mark = " impossible" if arm["roofline_impossible"] else ""
    return f"{100 * arm['roofline_share']:.0f} %{mark}"
