"""What a gate found, ready to be worded: verdicts by recipe and tier, and the clips that changed most.

It knows verdicts and samples. How they were reached is the business of `labkit.gate`; how they look, of the writers
beside this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.compare.outcome import Overall
from labkit.compare.verdicts import Outcome, Verdict
from labkit.results.units import METRICS, format_unit

FAMILIES = {
    "tier0": "Tier 0 · is it speech",
    "tier1": "Tier 1 · the reference's tokens, fed",
    "tier2": "Tier 2 · the acoustic path alone",
    "tier3": "Tier 3 · speaking freely",
    "speed": "Cost",
}
"""Family -> its title, in the order of a report."""
_WEIGHT: dict[Outcome, int] = {"fail": 0, "inconclusive": 1, "not comparable": 2, "pass": 3}
NAMES = {
    "runs": ("runs", ""),
    "valid": ("valid clips", "share"),
    "valid_free": ("valid clips, spoken freely", "share"),
    "kl": ("KL from the reference", "nats"),
    "total_variation": ("total variation", "share"),
    "top1": ("same first choice", "share"),
    "kl_drawn": ("KL, codes as drawn", "nats"),
    "total_variation_drawn": ("total variation, codes as drawn", "share"),
    "nll": ("token NLL", "nats"),
    "nll_delta": ("rise of token NLL", "nats"),
    "hidden_error": ("hidden-state error", "share"),
    "heard_log_mel_db": ("log-mel as heard", "dB"),
    "high_band_loss_db": ("lost above 8 kHz", "dB"),
    "duration_ratio": ("length", "share"),
    "flips": ("flipped steps", "share"),
    "first_flip_steps": ("steps to the first flip", ""),
    "lost_sentences": ("lost sentences", ""),
    "steps": ("decode steps", ""),
}


def name_of(metric: str) -> tuple[str, str]:
    """Label and unit of a metric of the gate or of the lab's table."""
    if metric in NAMES:
        return NAMES[metric]
    return (
        (METRICS[metric].label, METRICS[metric].unit) if metric in METRICS else (metric.replace("_", " "), "")
    )


def value_words(unit: str, value: float | None) -> str:
    """A value with its unit; divergences are small numbers and keep four places."""
    if unit == "nats" and value is not None:
        return f"{value:.4f} nats".replace("-0.0000", "0.0000")
    return format_unit(unit, value)


@dataclass(frozen=True)
class Line:
    """One verdict in its place. `base`: the recipe of the baseline that was compared with."""

    recipe: str
    base: str
    family: str
    verdict: Verdict

    @property
    def label(self) -> str:
        return name_of(self.verdict.metric)[0]

    @property
    def unit(self) -> str:
        return name_of(self.verdict.metric)[1]

    @property
    def word(self) -> str:
        """The outcome; `warn` for a pass that is surely beyond the smaller margin, and `informs` for what would not
        pass but counts for nothing."""
        warned = self.verdict.outcome == "pass" and self.verdict.warned
        if not self.verdict.gates and (warned or self.verdict.outcome in ("fail", "inconclusive")):
            return "informs"
        return "warn" if warned else self.verdict.outcome


@dataclass(frozen=True)
class Beside:
    """One sentence twice: samples [N] at 24 kHz of base and head. why: in a few words; scores: (label, base, head);
    free: head speaking by itself, where both were fed the same tokens; kl_steps, kl_books: divergence of each decode
    step and of each codebook, nats, empty where there is none."""

    recipe: str
    item: str
    text: str
    family: str
    why: str
    base_name: str
    base: NDArray[np.float32]
    head: NDArray[np.float32]
    scores: tuple[tuple[str, str, str], ...]
    free: NDArray[np.float32] | None = None
    kl_steps: tuple[float, ...] = ()
    kl_books: tuple[float, ...] = ()


@dataclass(frozen=True)
class GateResult:
    """A whole gate. arm: the A/A arm's lines, which count for nothing; facts: (name, value) of both sides."""

    name: str
    baseline: str
    overall: Overall
    lines: tuple[Line, ...]
    arm: tuple[Line, ...]
    clips: tuple[Beside, ...]
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    seconds: float

    def sorted_lines(self) -> list[Line]:
        """Regressions first, then what is undecided, warnings before what is well."""
        places = list(FAMILIES)
        return sorted(
            self.lines,
            key=lambda each: (
                _WEIGHT[each.verdict.outcome],
                not each.verdict.warned,
                places.index(each.family),
            ),
        )

    def by_recipe(self) -> Iterator[tuple[str, list[Line]]]:
        """Each recipe with its lines, in the order of the tiers."""
        for recipe in dict.fromkeys(line.recipe for line in self.lines):
            yield recipe, [line for line in self.lines if line.recipe == recipe]

    def record(self) -> dict[str, Any]:
        """Plain values for JSON; audio stays out."""
        return {
            "gate": self.name, "baseline": self.baseline, "outcome": self.overall.outcome,
            "exit_code": self.overall.exit_code, "seconds": round(self.seconds, 1), "facts": dict(self.facts),
            "notes": list(self.notes), "verdicts": [_record(line) for line in self.lines],
            "aa_arm": [_record(line) for line in self.arm],
            "clips": [{"recipe": c.recipe, "item": c.item, "text": c.text, "why": c.why} for c in self.clips],
        }  # fmt: skip


def headline(result: GateResult) -> str:
    """One sentence for people."""
    failed = [line for line in result.lines if line.verdict.outcome == "fail" and line.verdict.gates]
    if failed:
        recipes = ", ".join(dict.fromkeys(line.recipe for line in failed))
        return f"{recipes}: {_words(len(failed), 'metric')} worse than the margin allows, surely."
    if result.overall.outcome == "pass":
        return f"All {sum(result.overall.counts.values())} verdicts pass: no metric can have lost more than its margin."
    if result.overall.outcome == "not comparable":
        return "Nothing could be compared."
    return f"{_words(len(result.overall.deciding), 'verdict')} could not be decided; nothing surely failed."


def reasons(lines: Sequence[Line]) -> list[str]:
    """The reasons of verdicts, each once."""
    return list(dict.fromkeys(reason for line in lines for reason in line.verdict.reasons))


def _words(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _record(line: Line) -> dict[str, Any]:
    return {"recipe": line.recipe, "base_recipe": line.base, "family": line.family, **line.verdict.record()}
