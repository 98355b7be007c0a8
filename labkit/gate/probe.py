"""Child: one recipe speaks its part of a gate. `python -m labkit.gate.probe FOLDER`

`forced`: the reference's tokens are fed and the answers kept, first heard from the recipe's own hidden states, then
(tier 2) the reference's hidden states through this recipe's decoder and vocoder alone. `free`: the recipe draws its own
tokens; the noise is keyed by sentence, seed, step and codebook, so recipes part only where a decision flips.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.engines.base import StepOutput
from labkit.gate.figures import Forced, IntArray
from labkit.gate.order import ForcedClip, FreeClip, Order, load_forced, save_forced, save_free
from labkit.run.clips import load_references
from labkit.run.tasks import Job, Reporter, child_main
from labkit.scenarios.drivers import open_recipe

if TYPE_CHECKING:
    from labkit.synthesis import Prepared, Stages


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """Load the recipe and speak."""
    order = Order.read(job.folder)
    reporter.stage("load")
    with open_recipe(job.spec) as pipeline:
        if order.part == "forced":
            speak_forced(pipeline, job, order, reporter)
        else:
            speak_free(pipeline, job, order, reporter)


def speak_forced(stages: Stages, job: Job, order: Order, reporter: Reporter) -> None:
    """Every sentence's tokens through the recipe, and the reference's hidden states through its acoustic path.

    Each sentence is also spoken freely, so that a report can let people hear where a small divergence ends.
    """
    from labkit.synthesis import Request, prepare, speak

    speaker = stages.voice.speaker(job.spec.speaker)
    references = load_references(job)
    for number, text in enumerate(job.texts):
        reporter.stage("speak", f"{number + 1}/{len(job.texts)} {text.text}")
        row = prepare(stages.voice, Request(text.text, speaker, job.spec.seed))
        codes = references[text.id].codes
        answer = force(stages, row, codes)
        heard = acoustic = free = listen(stages, answer, codes)
        if order.reference is not None:
            acoustic = listen(stages, load_forced(Path(order.reference), number).answer, codes)
            free = speak(stages, [row], max_steps=job.spec.max_steps)[0].audio
        save_forced(job.folder, number, ForcedClip(answer, codes, heard, acoustic, free))


def force(stages: Stages, row: Prepared, codes: IntArray) -> Forced:
    """Feed the codes [T, C] and keep every answer, that of the end mark's step included."""
    from labkit.synthesis import Timings
    from labkit.synthesis.loop import Generation

    logits: list[Any] = []
    hidden: list[Any] = []

    def keep(step: int, out: StepOutput) -> None:
        logits.append(out.logits[0].copy())
        hidden.append(out.hidden[0].copy())

    generation = Generation(
        stages.gpt, stages.voice.config.gpt, [row],
        max_steps=None, replay=[codes], timings=Timings(), started=time.perf_counter(), observe=keep,
    )  # fmt: skip
    for _ in generation.steps():
        pass
    return Forced(np.stack(logits), np.stack(hidden))


def listen(stages: Stages, answer: Forced, codes: IntArray) -> Any:
    """Audio [N] of hidden states (or of codes, on that audio path) through decoder and vocoder."""
    from labkit.synthesis import Timings
    from labkit.synthesis.render import render

    return render(stages, codes if stages.audio_path == "codes" else answer.hidden[: len(codes)], Timings())


def speak_free(stages: Stages, job: Job, order: Order, reporter: Reporter) -> None:
    """Every sentence with every seed."""
    from labkit.model.sampling import SamplingParams
    from labkit.synthesis import Request, speak

    speaker, sampling = stages.voice.speaker(job.spec.speaker), SamplingParams(max_steps=job.spec.max_steps)
    for number, text in enumerate(job.texts):
        reporter.stage("speak", f"{number + 1}/{len(job.texts)} {text.text}")
        for seed in order.seeds:
            request = Request(text.text, speaker, seed, row=number, sampling=sampling)
            (said,) = speak(stages, [request], max_steps=job.spec.max_steps)
            save_free(job.folder, number, seed, FreeClip(said.codes, said.audio, said.ended, said.flags))


if __name__ == "__main__":
    child_main("probe", work)
