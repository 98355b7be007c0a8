"""What notebook cells need: a check of their parameters, and figures and clips that show in any notebook.

A notebook that nobody has marked as trusted shows no scripts; these forms need none.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.report.audio import opus_uri
from labkit.report.style import png
from labkit.spec import nearest

_INJECTED = "# Parameters\n"  # how papermill begins the cell that it adds


def refuse_unknown_parameters(cells: Sequence[str] | None = None) -> None:
    """`SpecError` when papermill was given a parameter that no earlier cell declares; it would only warn.

    `cells`: sources in the order in which they ran; the running notebook's own when left out.
    """
    known: list[str] = []
    for source in _executed() if cells is None else cells:
        names = _assigned(source)
        for name in names if source.startswith(_INJECTED) else ():
            if name not in known:
                raise SpecError(
                    f"this notebook has no parameter {name!r}{nearest(name, known)}; "
                    f"known parameters: {', '.join(known) or 'none'}."
                )
        known += names


def _executed() -> list[str]:
    from IPython import get_ipython

    shell = get_ipython()
    return [] if shell is None else list(shell.user_ns["In"])


def _assigned(source: str) -> list[str]:
    """Names that a cell assigns at its top level; none for one that is not plain Python, such as a magic."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return []
    return [
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]


def show(figure: Figure | None) -> Any:
    """The figure as a picture; words instead of nothing when there is nothing to draw."""
    from IPython.display import HTML, Image

    return HTML("<i>nothing to draw</i>") if figure is None else Image(png(figure), width=720)


def player(samples: NDArray[np.float32], label: str = "") -> Any:
    """A player. `IPython.display.Audio` stays mute in untrusted notebooks; a plain audio element plays."""
    from IPython.display import HTML

    name = f"<b>{escape(label)}</b><br>" if label else ""
    return HTML(f'{name}<audio controls src="{opus_uri(samples)}"></audio>')
