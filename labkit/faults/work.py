"""What is measured, where its parts are kept, and the worker processes that make what is missing.

Every part is a file of its own, written whole, in a folder named by what decides it: voice, sentences, settings, and
the sources that can change a score. An interrupted run goes on where it stopped; changed code is measured anew.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import LabError, SpecError
from labkit.gate.spec import REFERENCE, GateSpec
from labkit.results.arrays import load_arrays, save_arrays
from labkit.results.store import write_atomic
from labkit.spec import find_recipe, load_recipes

if TYPE_CHECKING:
    from labkit.run.request import Plan

Tell = Callable[[str], None]
Scores = dict[str, dict[str, float | None]]
"""Metric -> sentence -> score."""
_SOURCES = ("engines", "export", "gate", "model", "quality", "quantize", "synthesis", "text")
_OWN_SOURCES = ("faults/conditions", "faults/damage", "faults/judging", "faults/speaking")
_TIMING_SOURCES = ("measure", "scenarios", "faults/timed", "faults/timing")


@dataclass(frozen=True)
class Work:
    """gate: voice, corpus, number of sentences and settings; seeds: of the renditions that are drawn from for A/A."""

    root: Path
    gate: GateSpec
    seeds: tuple[int, ...]

    @cached_property
    def plan(self) -> Plan:
        from labkit.gate.probing import check_recipe_for_gate

        return check_recipe_for_gate(self.gate, find_recipe(REFERENCE, load_recipes()))

    @cached_property
    def folder(self) -> Path:
        """Where this work's parts lie; made when first asked for."""
        deciding = {
            "weights": self.plan.voice.weights_hash,
            "corpus": self.plan.corpus_hash,
            "settings": self.gate.model_dump(
                mode="json",
                include={"texts", "device", "speaker", "audio_path", "max_steps", "reference_seed"},
            ),
            "sources": sources_hash(*_SOURCES, *_OWN_SOURCES),
        }
        key = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:12]
        return _made(self.root / key)

    @cached_property
    def timings(self) -> Path:
        """Where its timed processes lie: other clocks time anew, and leave what was judged alone."""
        return _made(self.folder / f"timings-{sources_hash(*_TIMING_SOURCES)[:8]}")

    @property
    def items(self) -> list[str]:
        return [text.id for text in self.plan.texts]

    def clips_file(self, name: str) -> Path:
        return self.folder / f"clips-{name}.npz"

    def scores_file(self, name: str, part: str) -> Path:
        return self.folder / f"scores-{name}.{part}.json"

    def keep_clips(self, name: str, clips: Iterable[Any]) -> None:
        """Audio [N] of every sentence, in order."""
        save_arrays(self.clips_file(name), {f"{number:04d}": clip for number, clip in enumerate(clips)})

    def clips(self, name: str) -> list[Any]:
        arrays = load_arrays(self.clips_file(name))
        return [np.asarray(arrays[key]) for key in sorted(arrays)]

    def keep(self, name: str, part: str, value: Any) -> None:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        write_atomic(self.scores_file(name, part), text.encode())

    def kept(self, name: str, part: str) -> Any:
        """What was kept, None when nothing was."""
        file = self.scores_file(name, part)
        return json.loads(file.read_bytes()) if file.exists() else None


def sources_hash(*units: str) -> str:
    """Of the lab's packages and modules (`gate`, `faults/timed`) as they are written now."""
    package = Path(__file__).parents[1]
    files = [
        file
        for unit in units
        for file in (sorted((package / unit).rglob("*.py")) or [(package / unit).with_suffix(".py")])
    ]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{folder} cannot be made ({error.strerror}); choose another with --work.") from error
    return folder


@dataclass(frozen=True)
class Task:
    """One part to be made by a worker: a function of the work and plain values."""

    title: str
    do: Callable[..., None]
    arguments: tuple[Any, ...]


def carry_out(work: Work, tasks: list[Task], jobs: int, tell: Tell) -> None:
    """All tasks, `jobs` at a time in fresh processes (in this one for a single job); a failure ends it at once."""
    if jobs < 1:
        raise SpecError(f"jobs {jobs} must be 1 or more.")
    if jobs == 1:
        for number, task in enumerate(tasks, 1):
            tell(f"{number}/{len(tasks)} {task.title}")
            task.do(work, *task.arguments)
        return
    done = 0
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        running: dict[Future[None], Task] = {
            pool.submit(task.do, work, *task.arguments): task for task in tasks
        }
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                future.result()
                done += 1
                tell(f"{done}/{len(tasks)} {task.title}")
    finally:
        pool.shutdown(cancel_futures=True)
