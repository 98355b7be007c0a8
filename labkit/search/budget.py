"""What a recipe may cost and lose, as people write it: `kl<0.01`, `size<12`.

It knows the figures of a mix by name and nothing of how they come about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labkit.errors import SpecError
from labkit.spec import nearest

FIGURES = {
    "kl": "divergence of the codes from fp32's, nats a code",
    "mel": "log-mel distance from fp32's, dB",
    "size": "artifacts of the three stages on disk, MB",
    "step": "CPU time of a decode step as a share of ort-cpu fp32's",
}
"""What a budget can limit and a search can minimize."""
_LIMIT = re.compile(r"\s*([a-z0-9_]+)\s*(<=|<|>=|>|=)\s*([^\s]+)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Budget:
    """Upper limits by figure; a figure without one is free."""

    limits: Mapping[str, float]

    def holds(self, figures: Mapping[str, float]) -> bool:
        return all(figures[name] <= limit for name, limit in self.limits.items())

    def broken(self, figures: Mapping[str, float]) -> list[str]:
        """In words, each limit that the figures exceed."""
        return [
            f"{name} {figures[name]:.3g} exceeds {limit:g}"
            for name, limit in self.limits.items()
            if figures[name] > limit
        ]

    def __str__(self) -> str:
        return ", ".join(f"{name}<{limit:g}" for name, limit in self.limits.items()) or "no limit"


def parse_budget(texts: Iterable[str]) -> Budget:
    """From `kl<0.01`, or several joined by commas. SpecError names what cannot be read and how it is written."""
    limits: dict[str, float] = {}
    for part in (part for text in texts for part in text.split(",")):
        match = _LIMIT.fullmatch(part)
        if match is None:
            raise SpecError(
                f"budget {part.strip()!r} cannot be read; write a figure, < and a number, as in kl<0.01."
            )
        name, sign, number = match.groups()
        require_figure("budget", name)
        if sign not in ("<", "<="):
            raise SpecError(
                f"budget {part.strip()!r}: less is better in every figure, so write {name}<{number}."
            )
        try:
            limit = float(number)
        except ValueError:
            raise SpecError(f"budget {part.strip()!r}: {number!r} is no number.") from None
        if not 0 < limit < float("inf"):
            raise SpecError(f"budget {part.strip()!r}: the limit must be above 0 and finite.")
        if name in limits:
            raise SpecError(f"budget: {name} is limited twice; keep one.")
        limits[name] = limit
    return Budget(limits)


def require_figure(place: str, name: str) -> None:
    """SpecError with the nearest name when there is no such figure."""
    if name not in FIGURES:
        known = "; ".join(f"{figure} ({words})" for figure, words in FIGURES.items())
        raise SpecError(f"{place}: figure {name!r} is unknown{nearest(name, FIGURES)}; known: {known}.")
