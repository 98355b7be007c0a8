"""`stream`: one utterance in chunks of audio while it is being decoded.

A sample is handed out as soon as it is final, so joined chunks equal the whole utterance to rounding. The price is
the networks' reach: a chunk waits for `lookahead_steps` steps beyond it. Chunks start small, for early first audio,
and double up to their full size. Time to first audio is the time of the first `next()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from labkit.engines.base import FloatArray, IntArray
from labkit.errors import SpecError
from labkit.synthesis.render import IncrementalRenderer
from labkit.synthesis.request import Prepared, Request, Stages, Utterance
from labkit.synthesis.whole import begin, features_of, finish

CHUNK_STEPS = 48
FIRST_CHUNK_STEPS = 6


@dataclass(frozen=True)
class Chunk:
    """audio: [n] float32. `elapsed_s`: from the call of `stream` to this chunk; `steps`: decoded by then."""

    audio: FloatArray
    index: int
    first: bool
    last: bool
    elapsed_s: float
    steps: int


class SpeechStream(Iterator[Chunk]):
    """An iterator of chunks; `utterance` is there once it is exhausted."""

    def __init__(self, chunks: Iterator[Chunk | Utterance]) -> None:
        self._chunks = chunks
        self.utterance: Utterance | None = None

    def __next__(self) -> Chunk:
        item = next(self._chunks)
        if isinstance(item, Utterance):
            self.utterance = item
            item = next(self._chunks)  # nothing follows: raises StopIteration
        assert isinstance(item, Chunk)
        return item


def stream(
    stages: Stages,
    request: Request | Prepared,
    *,
    chunk_steps: int = CHUNK_STEPS,
    first_chunk_steps: int = FIRST_CHUNK_STEPS,
    max_steps: int | None = None,
    replay: IntArray | None = None,
) -> SpeechStream:
    """Speak one request in chunks of about `first_chunk_steps`, twice that, … up to `chunk_steps` decode steps.

    Work begins with the first `next()`. `replay`: codes [T, 4] to feed instead of sampling.
    """
    for name, value in (("chunk_steps", chunk_steps), ("first_chunk_steps", first_chunk_steps)):
        if value < 1:
            raise SpecError(f"stream: {name}={value} must be at least 1.")
    return SpeechStream(_run(stages, request, chunk_steps, first_chunk_steps, max_steps, replay))


def _run(
    stages: Stages,
    request: Request | Prepared,
    chunk_steps: int,
    size: int,
    max_steps: int | None,
    replay: IntArray | None,
) -> Iterator[Chunk | Utterance]:
    generation = begin(stages, [request], max_steps=max_steps, replay=None if replay is None else [replay])
    timings, started = generation.timings, generation.started
    renderer = IncrementalRenderer(stages, timings)
    parts: list[FloatArray] = []
    size = min(size, chunk_steps)
    due = size + renderer.reach.lookahead_steps

    def chunk(audio: FloatArray, last: bool) -> Chunk:
        parts.append(audio)
        index = len(parts) - 1
        steps = int(generation.lengths[0])
        return Chunk(audio, index, index == 0, last, perf_counter() - started, steps)

    for steps in generation.steps():
        if steps == due:
            yield chunk(
                renderer.advance(features_of(generation, 0, stages.audio_path), last=False), last=False
            )
            size = min(2 * size, chunk_steps)
            due += size
    yield chunk(renderer.advance(features_of(generation, 0, stages.audio_path), last=True), last=True)
    timings.total_s = perf_counter() - started
    yield finish(generation, 0, np.concatenate(parts), timings)
