"""The front of mixes as a picture: size against divergence, and where the made mixes were found to be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from labkit.search.searching import Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST = 1e-6  # nats: an exact GPT has no place on a logarithmic axis


def front_chart(found: Search) -> Figure:
    """A dot for each mix that none beats, as predicted; rings are measured; the budget's limits are lines."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from labkit.report.style import PALETTE, STYLE

    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        by_decoder: dict[str, list[dict[str, float]]] = {}
        for each in found.front:
            if each.predicted["kl"] > _LEAST:
                by_decoder.setdefault(each.recipe.decoder.precision, []).append(dict(each.predicted))
        for colour, (decoder, points) in zip(PALETTE[:3:2], by_decoder.items(), strict=False):
            label = "predicted" if len(by_decoder) == 1 else f"predicted, decoder {decoder}"
            axes.scatter(*_places(points), s=16, color=colour, label=label)
        corners = [(name, trial) for name, trial in found.corners.items() if trial.kl > _LEAST]
        _measured(axes, [trial.figures() for _, trial in corners], "GPT in one precision", PALETTE[4])
        for name, trial in corners:
            axes.annotate(name, (trial.size_bytes / 1e6, trial.kl), xytext=(8, 4), textcoords="offset points")
        made = [each.measured.figures() for each in found.tried if each.measured is not None]
        _measured(axes, [each for each in made if each["kl"] > _LEAST], "mix made and measured", PALETTE[1])
        for figure_name, line in (("kl", axes.axhline), ("size", axes.axvline)):
            if figure_name in found.budget.limits:
                line(found.budget.limits[figure_name], color=PALETTE[6], linewidth=1, label="budget")
        axes.set_yscale("log")
        axes.margins(x=0.12, y=0.12)
        axes.set_xlabel("artifacts of the three stages, MB")
        axes.set_ylabel("KL from fp32, nats a code (log)")
        legend_rows = math.ceil(len(axes.get_legend_handles_labels()[1]) / 2)
        axes.set_title(f"Mixes of {found.voice} that none beats", pad=12 + 17 * legend_rows)
        axes.legend(
            ncols=2, loc="lower left", bbox_to_anchor=(-0.01, 0.99), handlelength=1, columnspacing=1.5
        )
    return figure


def _measured(axes: Axes, points: list[dict[str, float]], label: str, colour: str) -> None:
    if points:
        axes.scatter(
            *_places(points), s=60, facecolors="none", edgecolors=colour, linewidths=1.6, label=label
        )


def _places(points: list[dict[str, float]]) -> tuple[list[float], list[float]]:
    return [each["size"] for each in points], [each["kl"] for each in points]
