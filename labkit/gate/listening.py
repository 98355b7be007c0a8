"""Which clips a report should let people hear: the sentences that lost most, base and head side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.gate.baseline import Baseline
from labkit.gate.document import probe_folder
from labkit.gate.measuring import Measured, items_of
from labkit.gate.order import load_free, load_heard
from labkit.gate.spec import REFERENCE
from labkit.report.gate_markdown import change_words
from labkit.report.gate_result import NAMES, Beside, Line, name_of, value_words
from labkit.results.store import Store
from labkit.results.units import METRICS

PER_RECIPE = 3  # of a recipe that failed; one of each that passed
Audio = NDArray[np.float32]
Clips = tuple[Audio, Audio, Audio | None]
"""Base, head, and head speaking freely where the other two were fed tokens."""
# which failure picks the sentences to hear, and what does when nothing failed
_TELLING = ("hidden_error", "kl", "log_mel_db", "valid", "valid_free")


@dataclass(frozen=True)
class Ear:
    """Where clips and scores of one gate are found."""

    store: Store
    measured: Measured
    baseline: Baseline

    def clips(self, lines: Sequence[Line]) -> list[Beside]:
        """The worst sentences of each recipe; of the reference only when it failed, for it is heard beside itself."""
        found = []
        for recipe in dict.fromkeys(line.recipe for line in lines):
            own = [line for line in lines if line.recipe == recipe and line.verdict.changes]
            failed = [line for line in own if line.verdict.outcome == "fail" and line.family != "speed"]
            if recipe == REFERENCE and not failed:
                continue
            for line, item in _worst(failed or own, PER_RECIPE if failed else 1):
                if (clip := self._beside(line, item)) is not None:
                    found.append(clip)
        return found

    def _beside(self, line: Line, item: str) -> Beside | None:
        clips = self._free(line, item) if line.family == "tier3" else self._forced(line, item)
        if clips is None:
            return None
        base, head, free = clips
        return Beside(
            recipe=line.recipe, item=item, text=self.baseline.about.items.get(item, item), family=line.family,
            why=f"{line.label} {change_words(line, line.verdict.changes[item])}", base_name=f"{REFERENCE}, today",
            base=base, head=head, free=free, scores=tuple(self._scores(line, item)),
            kl_steps=self._divergence(line.recipe, item, "kl_steps"),
            kl_books=self._divergence(line.recipe, item, "kl"),
        )  # fmt: skip

    def _forced(self, line: Line, item: str) -> Clips | None:
        """Heard from each recipe's own hidden states; in tier 2, from the reference's."""
        mine, theirs = (self.measured.forced.get(name) for name in (line.recipe, REFERENCE))
        if mine is None or theirs is None or mine.status != "ok":
            return None
        number = items_of(mine).index(item)
        base = load_heard(probe_folder(self.store, theirs), number)["heard"]
        head = load_heard(probe_folder(self.store, mine), number)
        if line.family == "tier2":
            return base, head["acoustic"], None
        return base, head["heard"], head["free"] if line.recipe != REFERENCE else None

    def _free(self, line: Line, item: str) -> Clips | None:
        mine, theirs = (self.measured.free.get(name) for name in (line.recipe, REFERENCE))
        if mine is None or theirs is None or mine.status != "ok":
            return None
        number, seed = items_of(mine).index(item), min(score.seed for score in mine.scores)
        return (
            load_free(probe_folder(self.store, theirs), number, seed).audio,
            load_free(probe_folder(self.store, mine), number, seed).audio,
            None,
        )

    def _scores(self, line: Line, item: str) -> Iterator[tuple[str, str, str]]:
        """Label, base and head of every named metric of this sentence."""
        base, head = self.baseline.scores[line.base], self.measured.scores(line.recipe)
        for family in ("tier3",) if line.family == "tier3" else ("tier1", "tier2"):
            for metric, items in head.get(family, {}).items():
                if metric in NAMES or metric in METRICS:
                    label, unit = name_of(metric)
                    before = base.get(family, {}).get(metric, {}).get(item, [])
                    yield (
                        label,
                        value_words(unit, _mean(before)),
                        value_words(unit, _mean(items.get(item, []))),
                    )

    def _divergence(self, recipe: str, item: str, name: str) -> tuple[float, ...]:
        document = self.measured.forced.get(recipe)
        return tuple(document.by_codebook.get(item, {}).get(name, ())) if document else ()


def _worst(lines: Sequence[Line], count: int) -> list[tuple[Line, str]]:
    """Sentences to hear: first those of the metric that tells most, then those that other metrics lost most in."""
    order = {metric: place for place, metric in enumerate(_TELLING)}
    ranked = sorted(lines, key=lambda line: order.get(line.verdict.metric, len(order)))
    found: dict[str, Line] = {}
    for place in range(count):
        for line in ranked:
            worst = line.verdict.worst_items(place + 1)
            if len(found) < count and len(worst) > place:
                found.setdefault(worst[place][0], line)
    return [(line, item) for item, line in found.items()]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
