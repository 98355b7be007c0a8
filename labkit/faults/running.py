"""All of it in order: speak, time, judge, draw, table. Each part is found if it was made before."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from labkit.compare.verdicts import Verdict
from labkit.environment import describe_environment, machine_class
from labkit.errors import SpecError
from labkit.faults import findings
from labkit.faults.conditions import CONDITIONS
from labkit.faults.drawing import (
    Tally,
    draw_fed_gates,
    draw_free_gates,
)
from labkit.faults.judging import score
from labkit.faults.speaking import TIER1, speak_condition, speak_freely, speak_reference
from labkit.faults.speeds import BASE, HEAD, SpeedFindings, find_speed, judge_memory
from labkit.faults.timing import TIMED, Timed, processes, time_processes
from labkit.faults.work import Scores, Task, Tell, Work, carry_out
from labkit.gate.spec import REFERENCE, GateSpec
from labkit.quality.base import scorer_names
from labkit.results.store import write_atomic

FREE_FAMILIES = (
    "validity",
    "forced_nll",
    "wer",
    "dnsmos",
)  # the gate's, and the one that hears lost words best
CLIPS = 96  # that share one loading of a scorer: about a minute of the dearest


@dataclass(frozen=True)
class Effort:
    """sentences: spoken, and judged by their tokens; panel: those of them that the panel judges where it decides,
    graded: where it only tells how far scores move; seeds: renditions for A/A, six or more; base_processes,
    head_processes: timed; fed_gates, free_gates, timings: drawn."""

    sentences: int = 30
    panel: int = 24
    graded: int = 8
    seeds: int = 8
    base_processes: int = BASE + HEAD
    head_processes: int = HEAD
    fed_gates: int = 100
    free_gates: int = 1000
    timings: int = 400


QUICK = Effort(sentences=4, panel=4, graded=2, seeds=6, base_processes=3, head_processes=1)


@dataclass(frozen=True)
class Findings:
    """What was found, ready to be tabled.

    verdicts: condition -> tier -> metric; moved: condition -> score; alarms: condition -> rule -> scores; speed: of
    each timed recipe; unscored: scores that no clip of the reference got, and the first reason.
    """

    facts: dict[str, str]
    effort: Effort
    verdicts: dict[str, dict[str, dict[str, Verdict]]]
    moved: dict[str, dict[str, findings.Movement]]
    forced: dict[str, dict[str, float]]
    alarms: dict[str, dict[str, list[str]]]
    fed_gates: Tally | None = None
    free_gates: Tally | None = None
    speed: dict[str, SpeedFindings] = field(default_factory=dict)
    memory: Verdict | None = None
    unscored: dict[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "facts": self.facts,
            "effort": asdict(self.effort),
            "verdicts": {
                name: {tier: {m: v.record() for m, v in metrics.items()} for tier, metrics in tiers.items()}
                for name, tiers in self.verdicts.items()
            },
            "moved": {name: {m: asdict(v) for m, v in moved.items()} for name, moved in self.moved.items()},
            "tier1": self.forced,
            "alarms": self.alarms,
            "fed_gates": self.fed_gates.record() if self.fed_gates else None,
            "free_gates": self.free_gates.record() if self.free_gates else None,
            "speed": {recipe: asdict(each) for recipe, each in self.speed.items()},
            "memory": self.memory.record() if self.memory else None,
            "unscored": self.unscored,
        }


def find_faults(
    gate: GateSpec,
    work_folder: Path,
    *,
    effort: Effort | None = None,
    jobs: int = 1,
    margins: Path | None = None,
    progress: Tell | None = None,
) -> Findings:
    """Make every known fault of the gate's voice and say who finds it. Resumes from `work_folder`.

    SpecError and other user's errors come before any work: a voice of random weights, a corpus that is too short.
    """
    wanted, tell = effort or Effort(), progress or (lambda line: None)
    gate = gate.model_copy(update={"texts": wanted.sentences, "threads": 1})
    work = Work(work_folder, gate, tuple(range(1, wanted.seeds + 1)))
    if len(work.items) < wanted.sentences:
        raise SpecError(
            f"corpus {gate.corpus!r} has {len(work.items)} sentences; {wanted.sentences} are needed for the faults."
        )
    tell(f"parts are kept in {work.folder}")
    tell("the reference speaks")
    speak_reference(work)
    # alone on the machine: what is judged beside it would take its memory bandwidth
    time_processes(work, wanted.base_processes, wanted.head_processes, tell)
    carry_out(work, _speaking(work), jobs, tell)
    carry_out(work, _judging(work, wanted), jobs, tell)
    tell("drawing gates and timings")
    return _conclude(work, wanted, margins)


def write_findings(found: Findings, folder: Path, docs: Path | None = None) -> dict[str, Path]:
    """`faults.json` and `faults.md` in the folder, and the tables between the marks of `docs`, if named."""
    from labkit.faults.tables import insert, page

    text = page(found)
    if docs is not None:
        insert(docs, text)
    written = {"json": folder / "faults.json", "markdown": folder / "faults.md"}
    body = json.dumps(found.record(), allow_nan=False, ensure_ascii=False, indent=1)
    write_atomic(written["json"], (body + "\n").encode())
    write_atomic(written["markdown"], text.encode())
    return written


def _speaking(work: Work) -> list[Task]:
    tasks = [
        Task(f"speak: {each.words}", speak_condition, (name,))
        for name, each in CONDITIONS.items()
        if not work.clips_file(name).exists()
    ]
    for seed in work.seeds:
        if not work.clips_file(f"free-{seed}").exists():
            tasks.append(Task(f"speak freely, seed {seed}", speak_freely, (seed,)))
    return tasks


def _judging(work: Work, effort: Effort) -> list[Task]:
    """Cheap families first, and what the conditions say before the free renditions."""
    counts = {
        name: effort.graded if each.role == "graded" or each.heard else effort.panel
        for name, each in CONDITIONS.items()
    }
    free = {f"free-{seed}": effort.sentences for seed in work.seeds}
    return [
        Task(f"judge: {family}, {', '.join(part)}", score, (family, part))
        for asked, families in ((counts, scorer_names("full")), (free, FREE_FAMILIES))
        for family in families
        for part in _parts({name: count for name, count in asked.items() if work.kept(name, family) is None})
    ]


def _parts(counts: dict[str, int]) -> list[dict[str, int]]:
    """Conditions with their numbers of clips, in parts of about `CLIPS` clips."""
    parts: list[dict[str, int]] = []
    for name, count in counts.items():
        if not parts or sum(parts[-1].values()) + count > CLIPS:
            parts.append({})
        parts[-1][name] = count
    return parts


def _conclude(work: Work, effort: Effort, margins: Path | None) -> Findings:
    tiers = {name: findings.tier_scores(work, name) for name in CONDITIONS}
    panels = {name: findings.panel_scores(work, name) for name in CONDITIONS}
    forced: dict[str, Scores | None] = {name: work.kept(name, TIER1) for name in CONDITIONS}
    renditions = [findings.panel_scores(work, f"free-{seed}") for seed in work.seeds]

    def timed(recipe: str, base: str, head: str) -> tuple[list[Timed], list[Timed]]:
        return processes(work, recipe, base), processes(work, recipe, head)

    return Findings(
        facts=_facts(work, effort),
        effort=effort,
        verdicts={
            name: findings.judge_condition(tiers["base"], tiers[name], margins) for name in CONDITIONS if name != "base"
        },
        moved={name: findings.movements(panels["base"], panels[name]) for name in CONDITIONS},
        forced={name: {m: _mean(s) for m, s in scores.items()} for name, scores in forced.items() if scores},
        alarms={name: findings.alarms(*(_absolute(tiers, panels, n) for n in ("base", name))) for name in CONDITIONS},
        fed_gates=draw_fed_gates([tiers[name] for name in findings.SAME_VOICE], effort.fed_gates, margins),
        free_gates=draw_free_gates(renditions, effort.free_gates, margins),
        speed={recipe: find_speed(*timed(recipe, "base", "slower"), effort.timings, margins) for recipe in TIMED},
        memory=judge_memory(*timed(REFERENCE, "base", "larger"), margins),
        unscored=findings.unscored(work, "base"),
    )  # fmt: skip


def _absolute(
    tiers: dict[str, findings.TierScores], panels: dict[str, Scores], name: str
) -> findings.TierScores:
    """What other rules are given: the tokens' scores, and the panel's whatever the clip was made from."""
    return {"tier1": tiers[name].get("tier1", {}), "panel": panels[name]}


def _facts(work: Work, effort: Effort) -> dict[str, str]:
    plan, environment = work.plan, describe_environment()
    commit = str(environment.get("git_commit") or "not under version control")[:10]
    return {
        "voice": f"{work.gate.voice} ({plan.voice.weights_hash[:12]})",
        "sentences": f"{effort.sentences} of {work.gate.corpus}",
        "machine": machine_class(environment),
        "code": commit + (", with changes" if environment.get("git_dirty") else ""),
    }


def _mean(scores: dict[str, float | None]) -> float:
    known = [value for value in scores.values() if value is not None]
    return mean(known) if known else float("nan")
