"""How the lab's pictures look: colours, one per recipe, matplotlib's settings, and the two forms they are shown in.

It knows figures and nothing of what they show. Nothing here touches global state.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

# middle tones: readable on white and on a dark page
PALETTE = ("#4f86e8", "#e07f35", "#2aa383", "#c05a9a", "#8670d6", "#b8951f", "#cf4b5b", "#4298ae")
INK, MUTED, GRID = "#1b1f27", "#6a7281", "#dde1e8"  # the page's stylesheet replaces these three
STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "font.family": ["DejaVu Sans"],
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "svg.hashsalt": "labkit",  # equal pictures are equal files
    "svg.fonttype": "path",
}


def recipe_colours(recipes: Iterable[str]) -> dict[str, str]:
    """One colour per recipe, by order of first appearance."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(dict.fromkeys(recipes))}


def png(figure: Figure, dpi: int = 144) -> bytes:
    """The figure on white, for notebooks and files."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def svg(figure: Figure) -> str:
    """The figure for embedding in a page whose stylesheet sets --ink, --muted and --grid: it follows dark mode."""
    buffer = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in ((INK, "--ink"), (MUTED, "--muted"), (GRID, "--grid"), ("#ffffff", "--card")):
        text = text.replace(colour, f"var({variable})")
    # the page scales pictures: the size in points would fix them
    return re.sub(
        r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r'height="[\d.]+pt" ', "", text, count=1), count=1
    )
