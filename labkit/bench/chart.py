"""The figures of `bench peers` as one picture: a panel for each race, a bar for each arm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.bench.peers import TITLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Figures = dict[str, Any]
_ROW, _HEAD = 0.3, 1.1  # inches of a bar, and of a panel's title and axis
_FAMILIES = ("upstream", "torch", "ort", "llama", "")
_AGAINST = {"step": "times upstream", "threads": "two threads, times one", "sound": "times upstream"}


def peers_chart(figures: Figures) -> Figure | None:
    """Ratios with their intervals; the share of the roofline stands at the bar. None when no arm has a ratio."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    from labkit.report.style import STYLE

    panels = {name: _compared(race) for name, race in figures["races"].items()}
    panels = {name: arms for name, arms in panels.items() if arms}
    if not panels:
        return None
    heights = [_HEAD + _ROW * len(arms) for arms in panels.values()]
    with rc_context(STYLE):
        figure = Canvas(figsize=(8.2, sum(heights) + 0.5), layout="constrained", facecolor="white")
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
        for place, (name, arms) in zip(axes, panels.items(), strict=True):
            _bars(place, arms)
            place.set_title(f"{TITLES[name][0].upper()}{TITLES[name][1:]}")
            place.set_xlabel(f"{_AGAINST[name]} — right is faster")
        figure.suptitle(f"voice {figures['voice']} · {figures['machine']}", fontsize=9, x=0.01, ha="left")
    return figure


def save_chart(figures: Figures, file: Path) -> Path | None:
    """Write the picture as PNG; None when there is nothing to show."""
    figure = peers_chart(figures)
    if figure is None:
        return None
    figure.savefig(file, dpi=150, metadata={"Software": "labkit"})
    return file


def _compared(race: Figures) -> Figures:
    return {name: row for name, row in race.get("arms", {}).items() if row.get("speedup") and row.get("base")}


def _bars(axes: Axes, arms: Figures) -> None:
    from labkit.report.style import INK, PALETTE

    for y, (name, row) in enumerate(arms.items()):
        ratio = row["speedup"]
        axes.barh(y, ratio["value"], height=0.72, color=PALETTE[_FAMILIES.index(_family(name))])
        axes.plot([ratio["low"], ratio["high"]], [y, y], color=INK, linewidth=1.4)
        share = row.get("roofline_share")
        words = f"{ratio['value']:.2f}" + ("" if share is None else f"   {share:.0%} of the roofline")
        axes.annotate(
            words, (ratio["high"], y), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.axvline(1.0, color=INK, linewidth=0.8)
    axes.set_yticks(range(len(arms)), [name.removesuffix(", 2 threads") for name in arms])
    axes.invert_yaxis()
    axes.margins(x=0.28, y=0.02)
    axes.set_xlim(left=0)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", colors=INK)


def _family(name: str) -> str:
    """The first of `_FAMILIES` that the name of an arm begins with; the last stands for all others."""
    return next((family for family in _FAMILIES if name.startswith(family)), _FAMILIES[-1])
