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
from labkit.faults.work import Work
from labkit.gate.order import load_forced
from labkit.gate.spec import REFERENCE
from labkit.run.clips import ReferenceSpeech, save_references
from labkit.run.document import ending
from labkit.run.process import watch
from labkit.run.tasks import EventLog, Job, events_file, log_file
from labkit.spec import find_recipe, load_recipes

PART = "timing"
SLOWER, LARGER = 0.15, 0.20
TEXTS, REPEATS = 2, 6


@dataclass(frozen=True)
class Timed:
    """One process. cpu_s: by repetition, each the sum over sentences; steps of a repetition; peak memory."""

    cpu_s: list[float]
    median_s: float
    steps: float
    rss_peak_bytes: float


def time_processes(work: Work, base: int, head: int) -> None:
    """`base` ordinary processes, `head` with a busy loop that costs 15 % and `head` with 20 % more memory.

    One after the other, never two at once; each is kept when it has ended.
    """
    for number in range(base):
        _process(work, f"base-{number:02d}", {})
    ordinary = processes(work, "base")
    spin_s = SLOWER * median(each.median_s / each.steps for each in ordinary)
    ballast = LARGER * median(each.rss_peak_bytes for each in ordinary)
    for number in range(head):
        _process(work, f"slower-{number:02d}", {"spin_s": spin_s})
        _process(work, f"larger-{number:02d}", {"ballast_bytes": ballast})


def processes(work: Work, kind: str) -> list[Timed]:
    """Those of a kind (`base`, `slower`, `larger`) that have been timed."""
    files = sorted(work.folder.glob(f"scores-{kind}-*.{PART}.json"))
    return [Timed(**json.loads(file.read_bytes())) for file in files]


def _process(work: Work, name: str, extra: dict[str, float]) -> None:
    if work.kept(name, PART) is not None:
        return
    gate = work.gate
    spec = gate.run_spec(
        find_recipe(REFERENCE, load_recipes()), texts=min(TEXTS, len(work.items)), repeats=REPEATS, warmups=1
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
        raise LabError(f"timing {name}: {failed['message']} {failed['remedy']}".strip())
    work.keep(name, PART, vars(_read(events)))


def _read(events: list[dict[str, Any]]) -> Timed:
    """As a gate counts: the median over repetitions of each sentence, summed; beside the sums by repetition."""
    samples = [each for each in events if each["kind"] == "sample"]
    memory = next(each for each in events if each["kind"] == "memory")
    items = list(dict.fromkeys(each["item"] for each in samples))
    by_item = {item: [each["cpu_s"] for each in samples if each["item"] == item] for item in items}
    first = {each["item"]: float(each["steps"]) for each in samples if each["repetition"] == 0}
    return Timed(
        cpu_s=[sum(values) for values in zip(*by_item.values(), strict=True)],
        median_s=sum(median(values) for values in by_item.values()),
        steps=sum(first.values()),
        rss_peak_bytes=float(memory["rss_peak_bytes"]),
    )
