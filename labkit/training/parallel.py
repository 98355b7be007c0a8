"""Stages in processes beside each other, for machines with more than one core.

Speech and its check are shared out shard by shard; the vocoder and the GPT, which need nothing of each other, train at
the same time; a stage that trains alone gets a thread for each worker. What is made is the same as from one process, up
to the order in which threads add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from labkit.training.pipeline import NanoTraining
from labkit.training.recipe import Recipe
from labkit.training.speech import HeldOut

SHARED = ("data", "check")
ABREAST = ("vocoder", "gpt")
Say = Callable[[str], None]
TELL: Say = partial(print, flush=True)  # of a process of its own: the caller's `say` stays with the caller


@dataclass(frozen=True)
class Work:
    """All that a process needs to take part."""

    recipe: Recipe
    held_out: HeldOut
    folder: Path
    speech: Path
    resume: bool

    def training(self, say: Say = TELL, threads: int = 1) -> NanoTraining:
        return NanoTraining(
            self.recipe, self.held_out, self.folder,
            speech=self.speech, resume=self.resume, threads=threads, say=say,
        )  # fmt: skip


def run_stages(work: Work, stages: Sequence[str], workers: int, say: Say) -> None:
    """Run the stages in the order given, on up to `workers` processes. The first failure of any is raised."""
    together = workers > 1 and set(ABREAST) <= set(stages)
    for stage in stages:
        if workers > 1 and stage in SHARED:
            _in_processes(workers, [(work, stage, worker, workers) for worker in range(workers)])
        elif together and stage in ABREAST:
            if stage == ABREAST[0]:
                _in_processes(2, [(work, each, 0, 1) for each in ABREAST])
        else:
            _run(work, stage, 0, 1, say, threads=workers)


def _run(work: Work, stage: str, worker: int, workers: int, say: Say = TELL, *, threads: int = 1) -> None:
    training = work.training(say, threads)
    if stage in SHARED:
        getattr(training, stage)(worker, workers)
    else:
        getattr(training, stage)()


def _in_processes(workers: int, calls: Sequence[tuple[Work, str, int, int]]) -> None:
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for done in [pool.submit(_run, *call) for call in calls]:
            done.result()
