"""The table of sensitivity as bars: a row for each part, a colour for each number of bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from labkit.sensitivity.tables import FIGURE_NAMES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def sensitivity_bars(
    frame: pd.DataFrame,
    *,
    stage: str = "gpt",
    metric: str = "kl",
    bits: Sequence[int] = (8, 4, 2),
    kinds: Sequence[str] = ("block", "edge"),
) -> Figure | None:
    """Bars of one stage, in signal order from the top; None when the table has nothing of what is asked for."""
    chosen = frame[
        (frame["stage"] == stage) & frame["kind"].isin(list(kinds)) & frame["bits"].isin(list(bits))
    ]
    chosen = chosen.dropna(subset=[metric])
    if chosen.empty:
        return None
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from labkit.report.style import INK, PALETTE, STYLE

    table = chosen.pivot_table(index="unit", columns="bits", values=metric, sort=False)
    widths = sorted(table.columns, reverse=True)
    with rc_context(STYLE):
        size = (6.4, 1.3 + (0.16 + 0.17 * len(widths)) * len(table))
        figure = Figure(figsize=size, layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        height = 0.84 / len(widths)
        for place, width in enumerate(widths):
            y = np.arange(len(table)) + (place - (len(widths) - 1) / 2) * height
            axes.barh(y, table[width], height=height * 0.9, color=PALETTE[place], label=f"{width} bits")
            for at, value in zip(y, table[width], strict=True):
                axes.annotate(
                    f"{value:.2g}", (value, at), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5
                )  # fmt: skip
        axes.set_yticks(range(len(table)), list(table.index))
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.margins(x=0.12, y=0.02)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", colors=INK)
        axes.set_xlabel(f"{FIGURE_NAMES[metric]} (log) — left is better")
        axes.set_title(f"What rounding one part of the {'GPT' if stage == 'gpt' else stage} does", pad=28)
        axes.legend(ncols=len(widths), loc="lower left", bbox_to_anchor=(-0.01, 0.99), handlelength=1)
    return figure
