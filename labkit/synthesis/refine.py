"""The refine-text stage: the GPT rewrites a text with pauses, laughs and fillers before it is spoken.

ChatTTS's settings: temperature 0.7, no repetition penalty, at most 384 tokens, ended by `[Ebreak]`; tokens from
`[break_0]` on are dropped from the result. The text head is a NumPy product on the hidden states, so it runs for any
engine. Voices that know a closed set of words have no trained text head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from labkit.engines.base import BoolArray, FloatArray, IntArray
from labkit.errors import LabError, SpecError, TextError
from labkit.model.sampling import REFINE_SAMPLING, RowNoise, draw, stack_noise
from labkit.synthesis.request import Prepared, Stages, Timings, code_ids, pad_left
from labkit.text.prompts import refine_prompt

_STREAM = 64
"""Noise stream of the refine stage, apart from those of the codes."""


def refine_rows(stages: Stages, rows: Sequence[Prepared], timings: Timings) -> list[Prepared]:
    """Replace the text of every row that asks for it; other rows pass through."""
    wanted = [i for i, row in enumerate(rows) if row.request.refine]
    refined = list(rows)
    if not wanted:
        return refined
    voice = stages.voice
    if voice.domain_words is not None:
        raise SpecError(f"voice {voice.name!r} has no trained refine stage; speak without refine.")
    begun = perf_counter()
    texts = _rewrite(stages, [rows[i] for i in wanted])
    for i, (text, flags) in zip(wanted, texts, strict=True):
        refined[i] = _with_text(stages, rows[i], text, flags)
    timings.refine_s = perf_counter() - begun
    return refined


def _with_text(stages: Stages, row: Prepared, text: str, flags: tuple[str, ...]) -> Prepared:
    """The row with its new text; with its old one, flagged, when the new one is empty or leaves no room to speak."""
    if not text:
        return replace(row, flags=(*flags, "refine_empty"))
    try:
        ids = code_ids(stages.voice, row.request, text)
    except TextError:
        return replace(row, flags=(*flags, "refine_too_long"))
    return replace(row, text=text, ids=ids, flags=flags)


def _rewrite(stages: Stages, rows: Sequence[Prepared]) -> list[tuple[str, tuple[str, ...]]]:
    """For each row the new text, empty when nothing came, and flags."""
    tokenizer = stages.voice.tokenizer()
    end = tokenizer.token_id("[Ebreak]")
    prompts = [np.asarray(tokenizer.encode(refine_prompt(row.text)), dtype=np.int64) for row in rows]
    tokens, lengths, ended = _generate(stages, rows, prompts, end)
    first_dropped = tokenizer.token_id("[break_0]")
    results: list[tuple[str, tuple[str, ...]]] = []
    for row_tokens, length, done in zip(tokens, lengths, ended, strict=True):
        kept = [int(t) for t in row_tokens[:length] if t < first_dropped]
        flags = () if done else ("refine_hit_max",)
        results.append((tokenizer.decode(kept).strip(), flags))
    return results


def _generate(
    stages: Stages, rows: Sequence[Prepared], prompts: Sequence[IntArray], end: int
) -> tuple[IntArray, IntArray, BoolArray]:
    """Sample text: tokens [B, T], lengths [B], whether each row ended by itself [B]."""
    from labkit.model.checkpoint import load_text_head

    head: FloatArray = load_text_head(stages.voice.folder)  # [V, D]
    ids, mask = pad_left(prompts)
    limit = min(REFINE_SAMPLING.max_steps, stages.voice.config.gpt.positions - ids.shape[1])
    if limit < 1:
        raise SpecError("refine: the text fills all positions of the voice; split it into sentences.")
    noise = [RowNoise(row.request.seed, row.request.row, stream=_STREAM) for row in rows]
    tokens = np.zeros((len(rows), limit, 1), dtype=np.int64)
    lengths = np.zeros(len(rows), dtype=np.int64)
    active = np.ones(len(rows), dtype=np.bool_)
    stages.gpt.reset(len(rows), ids.shape[1] + limit)
    out = stages.gpt.prefill(ids, mask, None)
    for step in range(limit):
        logits = (out.hidden @ head.T)[:, None]  # [B, 1, V]
        if not np.isfinite(logits[active]).all():
            raise LabError(f"stage gpt: its text logits are not finite at refine step {step}.")
        drawn = draw(
            logits, tokens[:, :step], REFINE_SAMPLING, stack_noise(noise, step, *logits.shape[1:]), step=step, end=end
        )  # fmt: skip
        active &= drawn[:, 0] != end
        if not active.any():
            break
        tokens[active, step] = drawn[active]
        lengths[active] += 1
        if step + 1 < limit:
            out = stages.gpt.step_text(tokens[:, step, 0])
    return tokens[:, :, 0], lengths, ~active
