"""Fresh processes that replay a few sentences: the base, and heads that were slowed down or grown on purpose.

It knows processes and what they report. Which rule finds what is the business of `drawing`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from labkit.errors import LabError
from labkit.faults.timed import INJECTED
from labkit.faults.work import Tell, Work
from labkit.gate.order import load_forced
from labkit.gate.spec import REFERENCE
from labkit.results.store import write_atomic
from labkit.run.clips import ReferenceSpeech, save_references
from labkit.run.document import ending
from labkit.run.process import watch
from labkit.run.tasks import EventLog, Job, events_file, log_file
from labkit.spec import find_recipe, load_recipes

SLOWER, LARGER = 0.15, 0.20
TEXTS, REPEATS = 2, 6
TIMED = (REFERENCE, "ort-fp32")  # mostly Python's and torch's overhead; mostly compiled work


@dataclass(frozen=True)
class Timed:
    """One process. cpu_s: by repetition, each the sum over sentences; medians as a gate counts them, in seconds and in
    yardsticks; core_share: processor seconds for each second that went by, median over samples (on a quiet machine
    about 1); peak memory."""

    cpu_s: list[float]
    median_s: float
    median_yardsticks: float
    core_share: float
    rss_peak_bytes: float


def time_processes(work: Work, base: int, head: int, tell: Tell) -> None:
    """Of each recipe of `TIMED`, `base` ordinary processes and `head` with a busy loop of 15 %; of the reference,
    `head` with 20 % more memory, too.

    One after the other, never two at once, recipes and kinds in turns, so that a slow minute falls on all of them; each
    is kept when it has ended.
    """
    done, total = 0, len(TIMED) * (base + head) + head
    for number in range(base):
        heads = range(number * head // base, (number + 1) * head // base)
        turn: list[tuple[str, str, dict[str, float]]] = [
            (recipe, f"base-{number:02d}", {}) for recipe in TIMED
        ]
        for of_head in heads:
            turn += [(recipe, f"slower-{of_head:02d}", {"slow_share": SLOWER}) for recipe in TIMED]
            turn.append((REFERENCE, f"larger-{of_head:02d}", {}))
        for recipe, name, extra in turn:
            done += 1
            if _file(work, recipe, name).exists():
                continue
            if name.startswith("larger"):
                peaks = [each.rss_peak_bytes for each in processes(work, recipe, "base")]
                extra = {"ballast_bytes": LARGER * median(peaks)}
            tell(f"{done}/{total} time a fresh process: {recipe}, {name}")
            _process(work, recipe, name, extra)


def processes(work: Work, recipe: str, kind: str) -> list[Timed]:
    """Those of a recipe and a kind (`base`, `slower`, `larger`) that have been timed."""
    return [
        Timed(**json.loads(file.read_bytes()))
        for file in sorted(work.timings.glob(f"{recipe}.{kind}-*.json"))
    ]


def _file(work: Work, recipe: str, name: str) -> Path:
    return work.timings / f"{recipe}.{name}.json"


def _process(work: Work, recipe: str, name: str, extra: dict[str, float]) -> None:
    gate = work.gate
    spec = gate.run_spec(
        find_recipe(recipe, load_recipes()), texts=min(TEXTS, len(work.items)), repeats=REPEATS, warmups=1
    )
    texts = work.plan.texts[: spec.texts]
    with tempfile.TemporaryDirectory(prefix="labkit-timed-", ignore_cleanup_errors=True) as temporary:
        job = Job(Path(temporary), spec, texts, work.plan.language, judged=False)
        codes = {
            text.id: ReferenceSpeech(load_forced(work.folder, number).codes, None)
            for number, text in enumerate(texts)
        }
        save_references(job, codes)
        if extra:
            (job.folder / INJECTED).write_text(json.dumps(extra), encoding="utf-8")
        job.write()
        ended = watch(
            "labkit.faults.timed", job.folder, log=log_file(job.folder, "timed"), threads=spec.threads,
            seconds=spec.limits.seconds,
        )  # fmt: skip
        events = list(EventLog(events_file(job.folder, "timed")).new())
        words = log_file(job.folder, "timed").read_text(encoding="utf-8", errors="replace")[-2000:]
    failed = next((each for each in events if each["kind"] == "failure"), None) or ending(
        ended, "timed", spec.limits, words
    )
    if failed:
        raise LabError(f"timing {recipe}, {name}: {failed['message']} {failed['remedy']}".strip())
    write_atomic(_file(work, recipe, name), json.dumps(vars(_read(events)), allow_nan=False).encode())


def _read(events: list[dict[str, Any]]) -> Timed:
    """As a gate counts: the median over repetitions of each sentence, summed; beside the sums by repetition."""
    samples = [each for each in events if each["kind"] == "sample"]
    memory = next(each for each in events if each["kind"] == "memory")
    items = list(dict.fromkeys(each["item"] for each in samples))
    seconds, yardsticks = (
        [[each[clock] for each in samples if each["item"] == item] for item in items]
        for clock in ("cpu_s", "cpu_yardsticks")
    )
    return Timed(
        cpu_s=[sum(values) for values in zip(*seconds, strict=True)],
        median_s=sum(map(median, seconds)),
        median_yardsticks=sum(map(median, yardsticks)),
        core_share=median(each["cpu_s"] / each["latency_s"] for each in samples),
        rss_peak_bytes=float(memory["rss_peak_bytes"]),
    )
