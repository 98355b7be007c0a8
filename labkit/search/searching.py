"""The search: what each layer loses, what its precisions cost, the best mix within a budget, and whether that is true.

Predictions come from `labkit.sensitivity` (one layer rounded, the rest exact), scaled so that they hold for a GPT that
is wholly in 8 or in 4 bits as ONNX Runtime runs it: the rounding of activations and what damages of several layers do
to each other enter by these two. Proposals are measured on the voice saying the same sentences by another seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labkit.calibration import calibration_set
from labkit.search.budget import Budget, parse_budget, require_figure
from labkit.search.front import Cost, Point, front
from labkit.search.mixing import (
    DEFAULT,
    EIGHT,
    EXACT_GPT,
    FOUR,
    Scheme,
    decoder_in,
    mixed_recipe,
    recipe_name,
    require_scheme,
)
from labkit.sensitivity import MIN_TEXTS
from labkit.sensitivity import sensitivity as measure_sensitivity
from labkit.spec import Precision, Recipe

if TYPE_CHECKING:
    import pandas as pd

    from labkit.calibration import CalibrationSet
    from labkit.search.trials import Trial
    from labkit.voices import Voice

TRIES = 4
"""Mixes made and measured before it is said that none within the budget was found."""
_BITS = {EIGHT: 8, FOUR: 4}
_DECODERS: tuple[Precision, ...] = ("fp32", "int8-dynamic")
_TIME_UNIT = 1e6  # times are whole millionths of an exact step, for `front`


@dataclass(frozen=True)
class Proposal:
    """A mix, what was predicted of it and what it was measured to be; `measured` is None when it was not made."""

    recipe: Recipe
    precisions: tuple[str, ...]
    predicted: Mapping[str, float]
    measured: Trial | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "recipe": self.recipe.model_dump(mode="json"),
            "gpt_layers": list(self.precisions),
            "predicted": dict(self.predicted),
            "measured": None if self.measured is None else self.measured.as_dict(),
        }


@dataclass(frozen=True)
class Search:
    """What a search found. chosen: the best mix whose measured figures are within the budget, or None; tried: all mixes
    that were made, in that order; front: every mix that none beats, as predicted, best first; corners: the GPT wholly
    in one precision, measured.
    """

    voice: str
    budget: Budget
    minimize: str
    chosen: Proposal | None
    tried: tuple[Proposal, ...]
    front: tuple[Proposal, ...]
    corners: Mapping[str, Trial]
    sensitivity: pd.DataFrame = field(repr=False)

    def is_chosen(self, proposal: Proposal) -> bool:
        """Whether a mix of the front is the chosen one."""
        return self.chosen is not None and proposal.recipe == self.chosen.recipe

    def as_dict(self) -> dict[str, Any]:
        return {
            "voice": self.voice,
            "budget": dict(self.budget.limits),
            "minimize": self.minimize,
            "chosen": None if self.chosen is None else self.chosen.recipe.name,
            "tried": [each.as_dict() for each in self.tried],
            "front": [each.as_dict() for each in self.front],
            "corners": {name: trial.as_dict() for name, trial in self.corners.items()},
        }


def search(
    voice: Voice,
    *,
    budget: Budget | Sequence[str] = ("kl<0.01",),
    minimize: str = "size",
    scheme: Scheme = DEFAULT,
    name: str | None = None,
    corpus: str | None = None,
    texts: int = 16,
    seed: int = 0,
    speaker: str | None = None,
    threads: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Search:
    """Search the recipe of `ort-cpu` with the least `minimize` (size, step, kl or mel) within the budget.

    Each layer of the GPT is in fp32, int8-weight or int4-weight, rounded by `scheme`. The decoder goes into
    int8-dynamic only under a budget that limits `mel`; code heads and vocoder stay in fp32. `name` begins the names of
    the recipes (default: the voice's). SpecError and CalibrationError before any work.
    """
    limits = budget if isinstance(budget, Budget) else parse_budget(budget)
    require_figure("minimize", minimize)
    require_scheme(voice, scheme)
    stem = recipe_name(voice, name)
    sets = [
        calibration_set(voice, corpus, texts, seed=each, speaker=speaker, threads=threads, minimum=MIN_TEXTS)
        for each in (seed, seed + 1)
    ]
    tell = progress or (lambda _: None)
    losses = measure_sensitivity(
        voice, stages=("gpt",), bits=tuple(_BITS.values()), block=scheme.block, kinds=("block",), corpus=corpus,
        texts=texts, seed=seed, speaker=speaker, threads=threads, progress=tell,
    )  # fmt: skip
    corners = _measure_corners(voice, scheme, sets[0], "mel" in limits.limits, tell)
    costs = layer_costs(losses, corners)
    points = sorted(
        _predictions(front(costs), corners, stem, scheme),
        key=lambda each: (each.predicted[minimize], each.predicted["kl"], each.predicted["size"]),
    )
    tried = tuple(_tried(points, limits, sets[1], tell))
    chosen = next((each for each in tried if each.measured and limits.holds(each.measured.figures())), None)
    return Search(
        voice=voice.name, budget=limits, minimize=minimize, chosen=chosen, tried=tried, front=tuple(points),
        corners=corners, sensitivity=losses,
    )  # fmt: skip


def layer_costs(losses: pd.DataFrame, corners: Mapping[str, Trial]) -> list[dict[str, Cost]]:
    """What each layer costs in each precision, beyond nothing in fp32's place.

    Sizes and times: the layers' equal shares of what a whole GPT in that precision has more or less than one in fp32.
    Divergences and squared mel distances: the layers' own, scaled so that their sum is what the whole was measured at.
    """
    exact = corners[EXACT_GPT]
    tables = {
        name: losses[(losses["bits"] == bits) & (losses["kind"] == "block")] for name, bits in _BITS.items()
    }
    layers = len(tables[FOUR])
    costs: list[dict[str, Cost]] = [{EXACT_GPT: Cost(0, 0, 0.0)} for _ in range(layers)]
    for name, table in tables.items():
        whole = corners[name]
        size = round((whole.gpt_bytes - exact.gpt_bytes) / layers)
        step = round((whole.step - exact.step) * _TIME_UNIT / layers)
        kl, mel2 = table["kl"].to_numpy(), table["mel_db"].to_numpy() ** 2
        kl_scale, mel_scale = (_ratio(whole.kl, kl.sum()), _ratio(whole.mel_db**2, mel2.sum()))
        for cost, own_kl, own_mel2 in zip(costs, kl, mel2, strict=True):
            cost[name] = Cost(size, step, float(own_kl * kl_scale), float(own_mel2 * mel_scale))
    return costs


def _ratio(whole: float, parts: float) -> float:
    return whole / parts if parts else 1.0


def _measure_corners(
    voice: Voice, scheme: Scheme, recorded: CalibrationSet, with_decoder: bool, tell: Callable[[str], None]
) -> dict[str, Trial]:
    from labkit.search.trials import try_recipes

    layers = voice.config.gpt.layers
    recipes = {each: mixed_recipe(each, "corner", (each,) * layers, "fp32", scheme) for each in (EIGHT, FOUR)}
    if with_decoder:
        recipes |= {
            decoder_in(each): mixed_recipe(decoder_in(each), "corner", (EXACT_GPT,) * layers, each, scheme)
            for each in _DECODERS[1:]
        }
    return try_recipes(recipes, recorded, tell)


def _predictions(
    points: Sequence[Point], corners: Mapping[str, Trial], stem: str, scheme: Scheme
) -> Iterator[Proposal]:
    """The mixes of the front with each decoder that was measured."""
    exact = corners[EXACT_GPT]
    for decoder in _DECODERS:
        corner = corners.get(decoder_in(decoder)) if decoder != "fp32" else exact
        if corner is None:
            continue
        for point in points:
            predicted = {
                "kl": point.kl + exact.kl,
                "mel": math.sqrt(point.mel2 + corner.mel_db**2),
                "size": (corner.size_bytes + point.size) / 1e6,
                "step": exact.step + point.time / _TIME_UNIT,
            }
            recipe = mixed_recipe(stem, "", point.precisions, decoder, scheme)
            yield Proposal(recipe, point.precisions, predicted)


def _tried(
    points: Sequence[Proposal], limits: Budget, recorded: CalibrationSet, tell: Callable[[str], None]
) -> Iterator[Proposal]:
    """Make and measure the best proposal, then better and better ones until one is within the budget.

    After a failure predictions are corrected by what was seen: those of the next must hold although they are wrong by
    the same factor.
    """
    from labkit.search.trials import try_recipes

    wrong_by = dict.fromkeys(limits.limits, 1.0)
    left = list(points)
    for number in range(1, TRIES + 1):
        fitting = [
            each
            for each in left
            if limits.holds({name: each.predicted[name] * factor for name, factor in wrong_by.items()})
        ]
        if not fitting:
            return
        proposal = fitting[0]
        left.remove(proposal)
        tell(f"proposal {number}: {words_of(proposal.precisions)}")
        trial = try_recipes({proposal.recipe.name: proposal.recipe}, recorded, tell)[proposal.recipe.name]
        figures = trial.figures()
        yield Proposal(proposal.recipe, proposal.precisions, proposal.predicted, trial)
        if limits.holds(figures):
            return
        wrong_by = {
            name: max(factor, _ratio(figures[name], proposal.predicted[name]))
            for name, factor in wrong_by.items()
        }


def words_of(precisions: Sequence[str]) -> str:
    """`fp32: 0, 4; int8-weight: 1; int4-weight: the other 3`."""
    counts = {each: [i for i, p in enumerate(precisions) if p == each] for each in (EXACT_GPT, EIGHT, FOUR)}
    most = max(counts, key=lambda each: len(counts[each]))
    parts = []
    for each, numbers in counts.items():
        if len(numbers) == len(precisions):
            return f"every layer in {each}"
        if numbers and each != most:
            parts.append(f"{each}: {', '.join(map(str, numbers))}")
    return "; ".join([*parts, f"{most}: the other {len(counts[most])}"])
