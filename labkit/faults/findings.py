"""From scores to verdicts: what the gate says of each condition, tier by tier, and what other rules would say.

It knows scores by sentence. The reference recipe is the base, as it is for any recipe that a baseline does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labkit.compare.bounds import items_needed
from labkit.compare.margins import Margin, Side, load_margins
from labkit.compare.rules import asv_rule, ratio_rule
from labkit.compare.verdicts import CONFIDENCE, POWER, Verdict, judge_family
from labkit.faults.conditions import CONDITIONS, Condition
from labkit.faults.speaking import TIER1
from labkit.faults.work import Scores, Work
from labkit.gate.judge import OF_VALIDITY, VALIDITY
from labkit.quality.base import all_metrics, scorer_names

TierScores = dict[str, Scores]
"""`tier0`, `tier1`, `tier2` -> metric -> sentence -> score."""
SAME_VOICE = ("base", "threads-2", "re-export")  # A/A arms: nothing was changed that could be heard
RULES = ("asv", "mean > 10 %", "median > 5 %")
# absolute scores that a plain rule can be used on: above zero, and known without a reference
PLAIN: dict[str, Side] = {
    "nll": "lower", "dnsmos_ovrl": "higher", "dnsmos_p808": "higher", "plcmos": "higher", "distillmos": "higher",
    "forced_nll": "lower", "wer": "lower", "cer": "lower",
}  # fmt: skip


@dataclass(frozen=True)
class Movement:
    """How far one score moved: mean paired change, its spread over sentences, how many sentences, and how many would
    show at 99 % with 90 % power that it moved at all (None: none would, it did not move)."""

    change: float
    spread: float
    n: int
    n_needed: int | None


def tier_scores(work: Work, name: str) -> TierScores:
    """All scores of a condition by the tier that they are judged in; what the gate would not judge is left out.

    A changed GPT has no tier 2: its acoustic path is the reference's. A changed acoustic path has no tier 1.
    """
    panel = panel_scores(work, name)
    tiers: TierScores = {"tier0": {"valid": panel["valid"]} if "valid" in panel else {}}
    if (forced := work.kept(name, TIER1)) is not None:
        tiers["tier1"] = forced
    if not CONDITIONS[name].heard:
        tiers["tier2"] = {metric: scores for metric, scores in panel.items() if metric != "valid"}
    return tiers


def panel_scores(work: Work, name: str) -> Scores:
    """What the panel says of a condition's clips (or of `free-<seed>`): validity's word, and all other scores."""
    found: Scores = {}
    for family in scorer_names("full"):
        kept = work.kept(name, family)
        if kept is None:
            continue
        wanted = ("valid", *OF_VALIDITY) if family == VALIDITY else tuple(kept["scores"])
        found |= {metric: kept["scores"][metric] for metric in wanted}
    return found


def unscored(work: Work, name: str) -> dict[str, str]:
    """Scores of the panel that no clip of a condition got -> the first reason."""
    kept = [each for family in scorer_names("full") if (each := work.kept(name, family)) is not None]
    return {
        metric: each["reasons"].get(metric, "")
        for each in kept
        for metric, scores in each["scores"].items()
        if all(value is None for value in scores.values())
    }


def judge_condition(
    base: TierScores, head: TierScores, margins: Path | None
) -> dict[str, dict[str, Verdict]]:
    """Tier -> metric -> verdict, as the gate comes to them."""
    found = {}
    for tier, scores in head.items():
        rules = {n: rule for n, rule in load_margins(margins, family=tier).items() if rule.metric in scores}
        if rules:
            found[tier] = judge_family(base.get(tier, {}), scores, rules)
    return found


def first_failure(verdicts: Mapping[str, Mapping[str, Verdict]]) -> tuple[str, Verdict] | None:
    """The lowest tier that fails, and there the metric that is furthest beyond its margin."""
    for tier in sorted(verdicts):
        failed = [each for each in verdicts[tier].values() if each.outcome == "fail"]
        if failed:
            return tier, max(failed, key=_excess)
    return None


def alarms(base: TierScores, head: TierScores) -> dict[str, list[str]]:
    """Rule -> the scores by which it calls the head worse. Distances have no base to be a ratio of, and no part."""
    found: dict[str, list[str]] = {rule: [] for rule in RULES}
    for tier, scores in head.items():
        for metric in scores.keys() & PLAIN.keys():
            sides = paired(base.get(tier, {}).get(metric, {}), scores[metric])
            for rule, alarmed in plain_rules(*sides, PLAIN[metric]).items():
                if alarmed:
                    found[rule].append(metric)
    return {rule: sorted(metrics) for rule, metrics in found.items()}


def plain_rules(base: np.ndarray, head: np.ndarray, direction: Side) -> dict[str, bool]:
    """What each of the other rules says of two samples; nothing where the base has no ratio."""
    if base.size < 2 or head.size < 2 or base.mean() <= 0:
        return dict.fromkeys(RULES, False)
    usual = bool(np.median(base) > 0)
    return {
        "asv": usual and asv_rule(base, head, direction),
        "mean > 10 %": ratio_rule(base, head, direction),
        "median > 5 %": usual and ratio_rule(base, head, direction, limit=0.05, of="median"),
    }


def movements(base: Scores, head: Scores) -> dict[str, Movement]:
    """Metric -> how far it moved; metrics without a number on both sides are left out."""
    found = {}
    for metric, scores in head.items():
        before, after = paired(base.get(metric, {}), scores)
        if after.size < 2:
            continue
        changes = after - before
        spread = float(changes.std(ddof=1))
        needed = float(items_needed(spread, abs(float(changes.mean())), CONFIDENCE, POWER))
        moved = np.isfinite(needed) and abs(float(changes.mean())) > 1e-9
        found[metric] = Movement(float(changes.mean()), spread, after.size, int(needed) if moved else None)
    return found


def paired(
    base: Mapping[str, float | None], head: Mapping[str, float | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores that both sides have, [N] each."""
    both = [(base.get(item), value) for item, value in head.items()]
    known = [pair for pair in both if None not in pair]
    sides = np.array(known, dtype=np.float64).reshape(-1, 2)
    return sides[:, 0], sides[:, 1]


def better_when(metric: str) -> str:
    """`higher`, `lower` or `neither`, of a panel's metric."""
    known = all_metrics("full")
    return known[metric].direction if metric in known else "lower"


def expected(condition: Condition) -> str:
    """What a good gate says of it."""
    return {"base": "pass", "null": "pass", "fault": "fail", "graded": ""}[condition.role]


def _excess(verdict: Verdict) -> float:
    rule: Margin = verdict.margin
    return abs(verdict.change or 0.0) / rule.fail if rule.fail else float("inf")
