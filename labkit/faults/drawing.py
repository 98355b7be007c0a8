"""Gates drawn again and again from real ones: how often a rule cries wolf.

It knows scores. Everything is drawn with one seed: the same measurements, the same table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labkit.compare.margins import Margin, load_margins
from labkit.compare.outcome import overall
from labkit.compare.verdicts import Verdict, judge_family
from labkit.faults.findings import TierScores, alarms
from labkit.faults.work import Scores

SEEDS = 2  # of free-running speech on each side of a gate


@dataclass
class Tally:
    """Of `draws` gates: how many ended how, what failed, and in how many each other rule called something worse.
    held_back: of those that failed, how many the gate's A/A arm would have kept from failing."""

    draws: int = 0
    held_back: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    alarmed: Counter[str] = field(default_factory=Counter)

    def add(self, verdicts: Sequence[Verdict], found: dict[str, list[str]]) -> None:
        self.draws += 1
        self.outcomes[overall(verdicts).outcome] += 1
        self.failed.update(each.metric for each in verdicts if each.outcome == "fail")
        self.alarmed.update(rule for rule, metrics in found.items() if metrics)

    def record(self) -> dict[str, object]:
        """Plain values for JSON."""
        counts = {"outcomes": self.outcomes, "failed": self.failed, "alarmed": self.alarmed}
        plain = {"draws": self.draws, "held_back": self.held_back}
        return {**plain, **{name: dict(counter) for name, counter in counts.items()}}


def draw_fed_gates(arms: Sequence[TierScores], draws: int, margins: Path | None) -> Tally:
    """Gates of tiers 0 to 2 in which nothing changed: each sentence's scores on either side are those of one of the
    arms, drawn for it. Arms are real runs of the same voice: again, on two threads, exported afresh."""
    rng, tally = np.random.default_rng(1), Tally()
    items = list(next(iter(arms[0]["tier0"].values())))
    for _ in range(draws):
        chosen = rng.integers(0, len(arms), (2, len(items)))
        sides = [_mix({item: arms[arm] for item, arm in zip(items, row, strict=True)}) for row in chosen]
        verdicts = [
            each
            for tier, scores in sides[1].items()
            for each in judge_family(sides[0].get(tier, {}), scores, _asked(tier, scores, margins)).values()
        ]
        tally.add(verdicts, alarms(*sides))
    return tally


def draw_free_gates(
    renditions: Sequence[Scores], draws: int, margins: Path | None, seeds: int = SEEDS
) -> Tally:
    """Gates of tier 3 in which nothing changed: of each sentence's renditions `seeds` are drawn for the base, as many
    others for the head, and as many others again for the gate's A/A arm. ValueError for fewer than three times `seeds`.
    """
    if len(renditions) < 3 * seeds:
        raise ValueError(f"{len(renditions)} renditions for three sides of {seeds}")
    rng, tally = np.random.default_rng(2), Tally()
    metrics = sorted(set.intersection(*(set(each) for each in renditions)))
    items = list(renditions[0][metrics[0]])
    for _ in range(draws):
        order = {item: rng.permutation(len(renditions)) for item in items}
        base, head, arm = (
            {
                metric: {item: [renditions[n][metric][item] for n in order[item][part]] for item in items}
                for metric in metrics
            }
            for part in (slice(n * seeds, (n + 1) * seeds) for n in range(3))
        )
        rules = _asked("tier3", head, margins)
        plain = [
            {"tier3": {m: {i: _mean(v) for i, v in scores.items()} for m, scores in side.items()}}
            for side in (base, head)
        ]
        verdicts = judge_family(base, head, rules)
        tally.add(list(verdicts.values()), alarms(*plain))
        if failed := {name for name, each in verdicts.items() if each.outcome == "fail"}:
            in_arm = judge_family(base, arm, rules)
            tally.held_back += all(in_arm[name].outcome == "fail" for name in failed)
    return tally


def _asked(tier: str, scores: Mapping[str, object], margins: Path | None) -> dict[str, Margin]:
    rules = load_margins(margins, family=tier)
    return {name: rule for name, rule in rules.items() if rule.metric in scores}


def _mix(arm_of: dict[str, TierScores]) -> TierScores:
    """Each sentence's scores from its own arm."""
    first = next(iter(arm_of.values()))
    return {
        tier: {metric: {item: arm[tier][metric][item] for item, arm in arm_of.items()} for metric in metrics}
        for tier, metrics in first.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
