"""Experiments on timed processes, drawn again and again: how often a rule finds a slow-down, or cries wolf.

It knows numbers of processes. Everything is drawn with one seed: the same measurements, the same table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median, stdev

import numpy as np

from labkit.compare.margins import load_margins
from labkit.compare.speed import memory_verdict, speed_verdict
from labkit.compare.verdicts import Verdict
from labkit.faults.findings import RULES, plain_rules
from labkit.faults.timing import Timed

BASE, HEAD = 10, 5  # processes of a gate
SLOW_DOWNS = (0.0, 0.05, 0.10, 0.15)


@dataclass(frozen=True)
class SpeedRates:
    """Shares of `draws` experiments. ours: by outcome; one_process, same_processes: by rule, given the repetitions of
    one process a side (as such rules are used), or the medians of the processes that ours was given."""

    slow_down: float
    draws: int
    ours: dict[str, float]
    one_process: dict[str, float]
    same_processes: dict[str, float]


@dataclass(frozen=True)
class SpeedFindings:
    """Of one recipe. scaled: by slow-down, empty where too few processes were timed; really_slowed: of processes with
    a busy loop, slowed_by: what it cost them in yardsticks, as a share; spread, spread_of_seconds: of the base's
    process medians, standard deviation over mean; core_share: of a core, median over processes."""

    scaled: list[SpeedRates]
    really_slowed: SpeedRates | None
    slowed_by: float | None
    spread: float | None
    spread_of_seconds: float | None
    core_share: float


def find_speed(
    base: Sequence[Timed], slower: Sequence[Timed], draws: int, margins: Path | None
) -> SpeedFindings:
    """What rules make of a recipe's ordinary processes, scaled, and of those that were really slowed down."""
    enough = len(base) >= BASE + HEAD and len(slower) >= HEAD
    medians, slow = ([each.median_yardsticks for each in side] for side in (base, slower))
    return SpeedFindings(
        scaled=[draw_timings(base, draws, margins, slow_down=share) for share in SLOW_DOWNS]
        if enough
        else [],
        really_slowed=draw_timings(base, draws, margins, slowed=slower) if enough else None,
        slowed_by=median(slow) / median(medians) - 1 if slow else None,
        spread=_spread(medians),
        spread_of_seconds=_spread([each.median_s for each in base]),
        core_share=median(each.core_share for each in [*base, *slower]),
    )


def draw_timings(
    base: Sequence[Timed],
    draws: int,
    margins: Path | None,
    *,
    slow_down: float = 0.0,
    slowed: Sequence[Timed] | None = None,
) -> SpeedRates:
    """Experiments on real processes: base and head are drawn from them without putting back, and the head's times are
    multiplied. `slowed`: processes that were really slowed down, to be the head instead.
    """
    rng, rule = np.random.default_rng(3), load_margins(margins, family="speed")["cpu_yardsticks"]
    count, one, same = Counter[str](), Counter[str](), Counter[str]()
    for _ in range(draws):
        order = rng.permutation(len(base))
        before = [base[int(n)] for n in order[:BASE]]
        if slowed is None:
            after = [base[int(n)] for n in order[BASE : BASE + HEAD]]
        else:
            after = [slowed[int(n)] for n in rng.permutation(len(slowed))[:HEAD]]
        old = np.array([each.median_yardsticks for each in before])
        new = np.array([each.median_yardsticks for each in after]) * (1 + slow_down)
        repetitions = np.array(before[0].cpu_s), np.array(after[0].cpu_s) * (1 + slow_down)
        count[speed_verdict(old.tolist(), new.tolist(), rule).outcome] += 1
        one.update(name for name, hit in plain_rules(*repetitions, "lower").items() if hit)
        same.update(name for name, hit in plain_rules(old, new, "lower").items() if hit)
    shares = [{name: each[name] / draws for name in names} for each, names in (
        (count, ("fail", "pass", "inconclusive")), (one, RULES), (same, RULES)
    )]  # fmt: skip
    return SpeedRates(slow_down, draws, *shares)


def judge_memory(base: Sequence[Timed], larger: Sequence[Timed], margins: Path | None) -> Verdict:
    """Peak memory of real processes, some of them grown on purpose."""
    before, after = ([each.rss_peak_bytes for each in side] for side in (base, larger))
    return memory_verdict(before, after, load_margins(margins, family="memory")["rss_peak_bytes"])


def _spread(medians: Sequence[float]) -> float | None:
    """Standard deviation over the mean."""
    return stdev(medians) / mean(medians) if len(medians) > 1 else None
