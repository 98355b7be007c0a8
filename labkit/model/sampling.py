"""From logits to the next codes, in NumPy alone, so that a process without torch can sample.

The order is ChatTTS's: divide by temperature; repetition penalty over the last 16 steps of each codebook; top-p;
top-k (both keep at least 3); forbid the end mark while the row is too short; softmax; draw. The draw takes its noise
explicitly: `argmax(p / e)` with exponential noise e is the categorical draw that `torch.multinomial` makes.

Noise comes from a counter-based generator keyed by (seed, row, step): the same seed gives a row the same codes
whatever stands beside it in the batch.

Shapes: logits [B, C, V] float32 for C codebooks (C = 1 for text); history [B, T, C] int64, the codes drawn so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.errors import SpecError

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]

MIN_KEEP = 3
"""Candidates that top-p and top-k always leave."""


@dataclass(frozen=True)
class SamplingParams:
    """How codes are drawn; the defaults are ChatTTS's. `greedy` takes the best score after all processing."""

    temperature: float = 0.3
    top_p: float | None = 0.7
    top_k: int | None = 20
    repetition_penalty: float = 1.05
    repetition_window: int = 16
    min_steps: int = 0
    max_steps: int = 2048
    greedy: bool = False

    def __post_init__(self) -> None:
        wrong = [
            f"{name}={value!r} ({rule})"
            for name, value, rule, good in (
                ("temperature", self.temperature, "above 0; use greedy for none", self.temperature > 0),
                ("top_p", self.top_p, "in (0, 1] or none", self.top_p is None or 0 < self.top_p <= 1),
                ("top_k", self.top_k, "at least 1 or none", self.top_k is None or self.top_k >= 1),
                ("repetition_penalty", self.repetition_penalty, "above 0", self.repetition_penalty > 0),
                ("repetition_window", self.repetition_window, "at least 1", self.repetition_window >= 1),
                ("max_steps", self.max_steps, "at least 1", self.max_steps >= 1),
                ("min_steps", self.min_steps, "in 0..max_steps", 0 <= self.min_steps <= self.max_steps),
            )
            if not good
        ]
        if wrong:
            raise SpecError(f"sampling: {'; '.join(wrong)}.")


CODE_SAMPLING = SamplingParams()
REFINE_SAMPLING = SamplingParams(temperature=0.7, repetition_penalty=1.0, max_steps=384)
"""ChatTTS's settings for its refine-text stage."""


class RowNoise:
    """Exponential noise of one row, a pure function of (seed, row, stream, step).

    `stream` keeps apart what one row draws for different ends: a retry, the refine stage.
    """

    def __init__(self, seed: int, row: int, stream: int = 0):
        self._key = np.array([seed % 2**64, row], dtype=np.uint64)
        self._stream = stream

    def exponential(self, step: int, shape: tuple[int, ...]) -> FloatArray:
        """Strictly positive float32 noise. Made from raw bits, so no NumPy release can change it."""
        # 2**40 counter blocks separate two steps, far more than one step can use
        counter = np.array([0, step, self._stream, 0], dtype=np.uint64)
        bits = np.random.Philox(key=self._key, counter=counter).random_raw(int(np.prod(shape)))
        uniform = (
            (bits >> np.uint64(12)).astype(np.float64) + 0.5
        ) * 2.0**-52  # in (0, 1), both ends excluded
        return (-np.log(uniform)).astype(np.float32).reshape(shape)


def stack_noise(rows: Sequence[RowNoise], step: int, codebooks: int, vocabulary: int) -> FloatArray:
    """The noise of a batch at one step: [B, C, V]."""
    return np.stack([row.exponential(step, (codebooks, vocabulary)) for row in rows])


def process_logits(
    logits: FloatArray, history: IntArray, params: SamplingParams, *, step: int, end: int
) -> FloatArray:
    """Scores ready for softmax, [B, C, V]; removed candidates are -inf. The input is not changed.

    `end` is the id of the end mark; `step` counts the codes already drawn.
    """
    scores = logits.astype(np.float32) / np.float32(params.temperature)
    if params.repetition_penalty != 1.0:
        _penalize_repetition(scores, history[:, -params.repetition_window :], params.repetition_penalty)
    _remove_unlikely(scores, params.top_p, params.top_k)
    if step < params.min_steps:
        scores[..., end] = -np.inf
    return scores


def softmax(scores: FloatArray) -> FloatArray:
    """Probabilities over the last axis."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def sample(probabilities: FloatArray, noise: FloatArray) -> IntArray:
    """Draw one index per distribution: argmax(p / noise), with exponential noise of the same shape."""
    return (probabilities / noise).argmax(-1)


def draw(
    logits: FloatArray,
    history: IntArray,
    params: SamplingParams,
    noise: FloatArray | None,
    *,
    step: int,
    end: int,
) -> IntArray:
    """The next codes [B, C]. `noise` [B, C, V] may be None only when `params.greedy`."""
    scores = process_logits(logits, history, params, step=step, end=end)
    if params.greedy:
        return scores.argmax(-1)
    if noise is None:
        raise ValueError("draw: noise is needed unless params.greedy")
    return sample(softmax(scores), noise)


def _penalize_repetition(scores: FloatArray, recent: IntArray, penalty: float) -> None:
    """Divide positive and multiply negative scores by penalty ** (times the code was drawn recently)."""
    batch, codebooks, vocabulary = scores.shape
    if recent.shape[1] == 0:
        return
    flat = scores.reshape(-1)
    distribution = np.arange(batch * codebooks).reshape(batch, 1, codebooks)
    count = np.bincount((distribution * vocabulary + recent).ravel(), minlength=flat.size)
    where = np.flatnonzero(count)
    strength = np.power(np.float32(penalty), count[where].astype(np.float32))
    hit = flat[where]
    flat[where] = np.where(hit < 0, hit * strength, hit / strength)


def _remove_unlikely(scores: FloatArray, top_p: float | None, top_k: int | None) -> None:
    """Set to -inf what top-p, then top-k, remove: all below one threshold per distribution; ties with it stay.

    Top-p removes the least likely candidates whose probabilities add up to at most 1 - top_p. Top-k of what is left
    is the k-th best of all, or nothing more to remove, so both thresholds come from one sort.
    """
    vocabulary = scores.shape[-1]
    ascending = np.sort(scores, axis=-1)
    removed = np.zeros(scores.shape[:-1], dtype=np.int64)
    if top_p is not None and top_p < 1.0:
        mass = np.cumsum(softmax(ascending), axis=-1, dtype=np.float64)
        removed = (mass.astype(np.float32) <= np.float32(1.0 - top_p)).sum(-1)
        removed = np.minimum(removed, max(vocabulary - MIN_KEEP, 0))
    if top_k is not None:
        removed = np.maximum(removed, vocabulary - max(top_k, MIN_KEEP))
    threshold = np.take_along_axis(ascending, removed[..., None], -1)
    np.putmask(scores, scores < threshold, -np.inf)
