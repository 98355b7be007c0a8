"""From what was measured to verdicts: each recipe against its own scores in the baseline, tier by tier.

A recipe that the baseline does not know is held to the reference recipe's scores there. It knows probes, baselines
and margins; the statistics are `labkit.compare`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from labkit.compare.margins import Margin, load_margins
from labkit.compare.speed import memory_verdict, speed_verdict
from labkit.compare.verdicts import Verdict, judge_family
from labkit.gate.anchor import UNANCHORED
from labkit.gate.baseline import Baseline, Costs, TierScores
from labkit.gate.document import OWN_SCORER, ProbeDocument
from labkit.gate.measuring import Measured, scores_of
from labkit.gate.spec import REFERENCE, Tier
from labkit.report.gate_result import Line

RUNS = Margin("runs", "count", "higher", 0, 0, 1)
"""A recipe that does not run is a defect, and one that this machine cannot run is not comparable."""

_OTHER_YARDSTICK = (
    "the baseline was timed with another version of the yardstick: `labkit baseline time` times it anew"
)


def compare_recipe(
    recipe: str, measured: Measured, baseline: Baseline, tiers: Iterable[Tier], margins: Path | None
) -> list[Line]:
    """One line for each metric of each tier that was asked for, and one for each part that did not run.

    A metric that the margins require has a line whether it was scored or not: what is missing on one side is not
    comparable, and says on which. Of the reference recipe the fingerprint holds a part alone.
    """
    base_name = recipe if recipe in baseline.scores else REFERENCE
    probes = measured.probes(recipe)
    broken = [document for document in probes if document.failure is not None]
    lines = [Line(recipe, base_name, "tier0", _not_run(document)) for document in broken]
    parts_lost = {document.part for document in broken}
    head, incomparable = measured.scores(recipe), _incomparable(probes, baseline)
    for tier in tiers:
        if ("free" if tier == 3 else "forced") in parts_lost:
            continue
        family = f"tier{tier}"
        base, rules = baseline.scores[base_name].get(family, {}), load_margins(margins, family=family)
        if recipe == REFERENCE:
            rules = {name: rule for name, rule in rules.items() if rule.metric not in UNANCHORED}
        for each in _judge(base, head.get(family, {}), rules):
            if why := incomparable.get(each.margin.metric):
                each = Verdict(each.margin, "not comparable", reasons=(why,))
            lines.append(Line(recipe, base_name, family, each))
    return lines


def compare_arm(measured: Measured, baseline: Baseline, margins: Path | None) -> list[Line]:
    """The A/A arm: the reference with other seeds against itself. Whatever it finds was not caused by a change."""
    if measured.aa is None or "tier3" not in baseline.scores[REFERENCE]:
        return []
    head = scores_of([measured.aa]).get("tier3", {})
    base = baseline.scores[REFERENCE]["tier3"]
    found = _judge(base, head, load_margins(margins, family="tier3"))
    return [
        Line(f"{REFERENCE}, other seeds", REFERENCE, "tier3", replace(each, gates=False)) for each in found
    ]


def heed_arm(lines: Iterable[Line], arm: Iterable[Line]) -> list[Line]:
    """Failures of tier 3 that the A/A arm has, too, are no findings: they become inconclusive."""
    alarms = {line.verdict.metric for line in arm if line.verdict.outcome == "fail"}
    heeded = []
    for line in lines:
        verdict = line.verdict
        if line.family == "tier3" and verdict.outcome == "fail" and verdict.metric in alarms:
            why = "the A/A arm fails this metric, too: other seeds alone change it that much"
            verdict = replace(verdict, outcome="inconclusive", reasons=(*verdict.reasons, why))
        heeded.append(replace(line, verdict=verdict))
    return heeded


def compare_costs(
    recipe: str, base: Costs, head: Costs, margins: Path | None, *, quiet_machine: bool
) -> list[Line]:
    """CPU time (and wall time, which counts on a quiet machine alone), peak memory, decode steps."""
    found: list[Verdict] = []
    for name, rule in load_margins(margins, family="speed").items():
        sides = (getattr(base, name), getattr(head, name))
        if rule.metric == "cpu_yardsticks" and all(sides) and base.yardstick != head.yardstick:
            found.append(Verdict(rule, "not comparable", reasons=(_OTHER_YARDSTICK,)))
            continue
        found.append(speed_verdict(*sides, rule, quiet_machine=quiet_machine))
    for name, rule in load_margins(margins, family="memory").items():
        found.append(memory_verdict(getattr(base, name), getattr(head, name), rule))
    steps = judge_family({"steps": base.steps}, {"steps": head.steps}, load_margins(margins, family="work"))
    return [Line(recipe, recipe, "speed", each) for each in [*found, *steps.values()]]


def _judge(base: TierScores, head: TierScores, margins: Mapping[str, Margin]) -> list[Verdict]:
    """Verdicts of all metrics that are required, and of the optional ones that either side was scored by."""
    wanted = {
        name: rule
        for name, rule in margins.items()
        if not rule.optional or rule.metric in head or rule.metric in base
    }
    verdicts = judge_family(base, head, wanted).values() if wanted else ()
    return [_with_side(each, base, head) if each.outcome == "not comparable" else each for each in verdicts]


def _with_side(verdict: Verdict, base: TierScores, head: TierScores) -> Verdict:
    """The side that was not scored at all, and what to do, as its reason."""
    metric = verdict.margin.metric
    lacking = [
        where
        for where, scores in (("the baseline", base), ("what was measured", head))
        if metric not in scores
    ]
    if not lacking:
        return verdict
    verb = "have" if lacking[1:] else "has"
    remedy = (
        "record the baseline with it" if "the baseline" in lacking else "add its scorer to the gate's panel"
    )
    why = f"{' and '.join(lacking)} {verb} no {metric}: {remedy}, or leave it out of the margins"
    return replace(verdict, reasons=(why,))


def _incomparable(probes: Iterable[ProbeDocument], baseline: Baseline) -> dict[str, str]:
    """Metrics without any score here, or scored by something else than in the baseline: metric -> why."""
    missing: dict[str, str] = {}
    scored, other = set(), {}
    for score in (score for document in probes for score in document.scores):
        if score.value is None:
            missing.setdefault(score.metric, score.reason)
            continue
        scored.add(score.metric)
        if score.tier == 2 and score.scorer == OWN_SCORER:
            continue  # the reference's acoustic path, held to its fingerprint instead of scored by the panel
        scorer, known = f"{score.scorer} {score.scorer_version}", baseline.about.scorers.get(score.metric)
        if known is not None and scorer != known:
            other[score.metric] = f"scored by {scorer} here and by {known} in the baseline"
    return {metric: why for metric, why in missing.items() if metric not in scored} | other


def _not_run(document: ProbeDocument) -> Verdict:
    assert document.failure is not None
    why = f"{document.status} in {document.failure.stage}: {document.failure.message}"
    unavailable = document.status == "unavailable"
    return Verdict(
        RUNS,
        "not comparable" if unavailable else "fail",
        n=1,
        change=None if unavailable else 1.0,
        reasons=(why,),
    )
