"""Figures and clips for notebook cells, in forms that also show in a notebook nobody has marked as trusted."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from labkit.report.audio import opus_uri
from labkit.report.plots import png


def show(figure: Figure | None) -> Any:
    """The figure as a picture; words instead of nothing when there is nothing to draw."""
    from IPython.display import HTML, Image

    return HTML("<i>nothing to draw</i>") if figure is None else Image(png(figure), width=720)


def player(samples: NDArray[np.float32], label: str = "") -> Any:
    """A player. `IPython.display.Audio` stays mute in untrusted notebooks; a plain audio element plays."""
    from IPython.display import HTML

    name = f"<b>{escape(label)}</b><br>" if label else ""
    return HTML(f'{name}<audio controls src="{opus_uri(samples)}"></audio>')
