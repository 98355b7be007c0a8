"""Found mixes as a YAML file of recipes; what cannot be written is refused before any work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from labkit.errors import UserError
from labkit.search.searching import Proposal, Search, words_of

_HEAD = """\
# Recipes of mixed precision for the voice {voice}, found by `labkit recipe search`:
# the least {minimize} with {budget}, as measured on calibration sentences.
# Code heads and vocoder are in fp32: they are never quantized unasked.
"""


def check_writable(recipes: Path | None, chart: Path | None = None) -> None:
    """UserError for recipes that are no YAML or exist, a chart that is no PNG or SVG, and folders that do not exist."""
    if recipes is not None and recipes.suffix not in (".yaml", ".yml"):
        raise UserError(f"-o {recipes}: recipes are written as .yaml; name such a file.")
    if recipes is not None and recipes.exists():
        raise UserError(f"-o {recipes} exists; remove it or name another file.")
    if chart is not None and chart.suffix not in (".png", ".svg"):
        raise UserError(f"--plot {chart}: the chart is written as .png or .svg; name such a file.")
    for option, path in (("-o", recipes), ("--plot", chart)):
        if path is not None and not path.parent.is_dir():
            raise UserError(f"{option} {path}: {path.parent} is no folder; make it first.")


def write_recipes(found: Search, path: Path, *, others: int = 0) -> list[str]:
    """Write the chosen mix and `others` of the front, spread over it; returns the names of the recipes.

    A GPT in one precision is written only when it is the best: those recipes ship. The others are predictions, and
    their descriptions say so. UserError when there is nothing to write.
    """
    bodies: dict[str, dict[str, Any]] = {}
    if found.chosen is not None:
        bodies[found.chosen.recipe.name] = _body(found.chosen)
    mixed = [each for each in found.front if len(set(each.precisions)) > 1]
    spread = _spread([each for each in mixed if not found.is_chosen(each)], others)
    bodies |= {f"{each.recipe.name}-{i}": _body(each) for i, each in enumerate(spread, 1)}
    if not bodies:
        raise UserError(f"no mix within {found.budget} was found, so {path} was not written.")
    head = _HEAD.format(voice=found.voice, minimize=found.minimize, budget=found.budget)
    text = yaml.safe_dump(bodies, sort_keys=False, allow_unicode=True, width=110)
    path.write_text(f"{head}{text}", encoding="utf-8")
    return list(bodies)


def _body(proposal: Proposal) -> dict[str, Any]:
    recipe, measured = proposal.recipe, proposal.measured
    figures = proposal.predicted if measured is None else measured.figures()
    told = f"KL {figures['kl']:.2g}, mel {figures['mel']:.2g} dB, {figures['size']:.1f} MB"
    source = "predicted, not measured" if measured is None else "measured"
    stages = recipe.model_dump(mode="json", include={"gpt", "decoder", "vocoder"})
    for stage in stages.values():
        if not stage["options"]:
            del stage["options"]
    return {"description": f"GPT layers: {words_of(proposal.precisions)}; {told} ({source}).", **stages}


def _spread(points: Sequence[Proposal], count: int) -> list[Proposal]:
    """`count` of the points, evenly spaced, both ends among them."""
    if count <= 1 or len(points) <= count:
        return list(points[:count])
    return [points[i * (len(points) - 1) // (count - 1)] for i in range(count)]
