"""What is asked of a voice and what comes back, and the way from a text to prompt ids.

Shapes: T decode steps, N audio samples at 24 kHz, D the voice's hidden width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labkit.engines.base import BoolArray, DecoderStage, FloatArray, GptStage, IntArray, VocoderStage
from labkit.errors import SpecError
from labkit.model.sampling import CODE_SAMPLING, SamplingParams
from labkit.text.check import check_domain, check_length, check_normalized, check_raw
from labkit.text.normalize import ALL_RULES, NormalizationReport, NormalizeOptions, normalize
from labkit.text.prompts import DEFAULT_STYLE, code_prompt, is_style

if TYPE_CHECKING:
    from labkit.model.speaker import SpeakerEmbedding
    from labkit.spec import AudioPath
    from labkit.voices import Voice

MIN_ROOM = 32
"""Decode steps (0.7 s) that a prompt must leave free, whatever is asked."""


class Stages(Protocol):
    """Three loaded stages of one voice: a Pipeline, or anything shaped like it."""

    gpt: GptStage
    decoder: DecoderStage
    vocoder: VocoderStage
    voice: Voice
    audio_path: AudioPath


@dataclass(frozen=True)
class Request:
    """One utterance to speak.

    `row` and `seed` key the noise: requests that differ in either are independent draws. `refine` lets the GPT
    rewrite the text with pauses first (voices with a text head trained for it only).
    """

    text: str
    speaker: SpeakerEmbedding | None = None
    seed: int = 0
    row: int = 0
    sampling: SamplingParams = CODE_SAMPLING
    style: str = DEFAULT_STYLE
    refine: bool = False
    normalize: NormalizeOptions = ALL_RULES

    def __post_init__(self) -> None:
        if not is_style(self.style):
            raise SpecError(
                f"style {self.style!r} is not made of tokens like [speed_5], [oral_2], [laugh_0], [break_6]."
            )


@dataclass
class Timings:
    """Seconds of `time.perf_counter`; of the whole batch when rows were decoded together.

    `step_s` holds one value per decode step: the GPT's time alone, without sampling (`sample_s`, in all).
    `first_step_s` and `total_s` count from the call, normalization and tokens included; the decoder's and vocoder's
    times are this utterance's own. `refine_s` is None when no refine stage ran.
    """

    prepare_s: float = 0.0
    refine_s: float | None = None
    prefill_s: float = 0.0
    first_step_s: float = 0.0
    step_s: list[float] = field(default_factory=list)
    sample_s: float = 0.0
    decoder_s: float = 0.0
    vocoder_s: float = 0.0
    total_s: float = 0.0

    @property
    def decode_s(self) -> float:
        """All decode steps after the prefill."""
        return sum(self.step_s)


@dataclass(frozen=True)
class Utterance:
    """What a voice said.

    audio: [N] float32, N = 512 T - 256; codes: [T, 4]; hidden: [T, D], the states that predicted each step's codes.
    `ended`: an end mark was drawn (in replay: always True). `text` is what was put into the prompt.
    """

    text: str
    audio: FloatArray
    codes: IntArray
    hidden: FloatArray
    ended: bool
    flags: tuple[str, ...]
    timings: Timings
    report: NormalizationReport


@dataclass(frozen=True)
class Prepared:
    """A request on its way into the GPT. ids: [S] token ids of the code prompt."""

    request: Request
    text: str
    report: NormalizationReport
    ids: IntArray
    flags: tuple[str, ...] = ()


def prepare(voice: Voice, request: Request) -> Prepared:
    """Normalize, check and tokenize one request; `TextError` before any stage runs."""
    check_raw(request.text)
    text, report = normalize(request.text, request.normalize, voice.domain_words)
    check_normalized(request.text, text)
    unknown = tuple(word for word in voice.unknown_words(text) if any(map(str.isalnum, word)))
    check_domain(text, unknown, voice=voice.name, closed=voice.domain_words is not None)
    return Prepared(request, text, replace(report, unknown_words=unknown), code_ids(voice, request, text))


def code_ids(voice: Voice, request: Request, text: str) -> IntArray:
    """Token ids [S] of the code prompt for a text that is ready to be read; `TextError` when it is too long."""
    prompt = code_prompt(text, speaker=request.speaker is not None, style=request.style)
    ids = np.asarray(voice.tokenizer().encode(prompt), dtype=np.int64)
    check_length(request.text, len(ids), voice.config.gpt.positions, MIN_ROOM)
    return ids


def pad_left(rows: Sequence[IntArray]) -> tuple[IntArray, BoolArray]:
    """Prompts as one batch: ids [B, S] and mask [B, S], True at real tokens."""
    width = max(len(row) for row in rows)
    ids = np.zeros((len(rows), width), dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.bool_)
    for i, row in enumerate(rows):
        ids[i, width - len(row) :] = row
        mask[i, width - len(row) :] = True
    return ids, mask


def speaker_rows(requests: Sequence[Request], width: int) -> FloatArray | None:
    """Unit vectors [B, D], zeros where a row has no speaker; None when no row has one."""
    if all(request.speaker is None for request in requests):
        return None
    rows = np.zeros((len(requests), width), dtype=np.float32)
    for i, request in enumerate(requests):
        if request.speaker is not None:
            rows[i] = request.speaker.normalized()
    return rows
