"""`speak`: a batch of requests to whole utterances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from labkit.engines.base import IntArray
from labkit.errors import SpecError
from labkit.synthesis.loop import Generation, Observer
from labkit.synthesis.refine import refine_rows
from labkit.synthesis.render import render
from labkit.synthesis.request import FloatArray, Prepared, Request, Stages, Timings, Utterance, prepare


def speak(
    stages: Stages,
    requests: Sequence[Request | Prepared],
    *,
    max_steps: int | None = None,
    replay: Sequence[IntArray] | None = None,
    observe: Observer | None = None,
) -> list[Utterance]:
    """Speak the requests as one batch, in order.

    `max_steps` bounds the decode steps of every row below its own `sampling.max_steps`. `replay` feeds the given
    codes, [T, 4] per request, instead of sampling: T steps of the GPT each, whatever the recipe would have said.
    `observe` sees each step's logits and hidden states before codes are drawn. Bad text raises before any stage runs.
    """
    if not requests:
        raise SpecError("speak: no requests; give at least one.")
    generation = begin(stages, requests, max_steps=max_steps, replay=replay, observe=observe)
    for _ in generation.steps():
        pass
    utterances = []
    for i in range(len(generation.rows)):
        own = replace(generation.timings)
        audio = render(stages, features_of(generation, i, stages.audio_path), own)
        utterances.append(finish(generation, i, audio, own))
    total = perf_counter() - generation.started
    for utterance in utterances:
        utterance.timings.total_s = total
    return utterances


def begin(
    stages: Stages,
    requests: Sequence[Request | Prepared],
    *,
    max_steps: int | None,
    replay: Sequence[IntArray] | None,
    observe: Observer | None = None,
) -> Generation:
    """Everything before the first step of the GPT: requests made ready, refined where asked for; the clock runs."""
    if max_steps is not None and max_steps < 1:
        raise SpecError(f"max_steps={max_steps} must be at least 1.")
    started = perf_counter()
    timings = Timings()
    rows = [row if isinstance(row, Prepared) else prepare(stages.voice, row) for row in requests]
    timings.prepare_s = perf_counter() - started
    rows = refine_rows(stages, rows, timings)
    return Generation(
        stages.gpt, stages.voice.config.gpt, rows,
        max_steps=max_steps, replay=replay, timings=timings, started=started, observe=observe,
    )  # fmt: skip


def features_of(generation: Generation, row: int, audio_path: str) -> IntArray | FloatArray:
    """What the decoder reads of a row so far: hidden states [T, D], or codes [T, 4] on the codes path."""
    length = generation.lengths[row]
    return (generation.codes if audio_path == "codes" else generation.hidden)[row, :length]


def finish(generation: Generation, row: int, audio: FloatArray, timings: Timings) -> Utterance:
    """The finished row with its flags; a bad row is flagged and never raised out of a batch."""
    length = int(generation.lengths[row])
    prepared = generation.rows[row]
    flags = list(prepared.flags)
    if length == 0:
        flags.append("immediate_end")
    elif generation.retried[row]:
        flags.append("retried_start")
    if generation.capped[row]:
        flags.append("hit_max")
    if not np.isfinite(audio).all():
        flags.append("non_finite_audio")
    return Utterance(
        text=prepared.text,
        audio=audio,
        codes=generation.codes[row, :length],
        hidden=generation.hidden[row, :length],
        ended=not bool(generation.capped[row]),
        flags=tuple(flags),
        timings=timings,
        report=prepared.report,
    )
