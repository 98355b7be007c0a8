"""Tier 1 in numbers: what a recipe says about the reference's tokens, beside what the reference says about them.

Pure NumPy. Both were fed the same tokens (teacher-forced), so there is no sampling noise between them. Shapes: T decode
steps of the utterance, and one more that predicts the end mark; C codebooks; V codes; D hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.model.sampling import RowNoise, SamplingParams, process_logits, sample, softmax

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.int64]
LEAST_PROBABILITY = 1e-6
"""Processed distributions leave most codes out; where the candidate left out what the reference may draw, its
probability is taken as this, so that the divergence is large and not infinite."""


@dataclass(frozen=True)
class Forced:
    """What one recipe answered: logits [T + 1, C, V], hidden [T + 1, D]; row t predicts the codes of step t."""

    logits: FloatArray
    hidden: FloatArray


@dataclass(frozen=True)
class Figures:
    """One sentence. values: means over steps and codebooks; by_codebook: [C] each; kl_steps: [T + 1, C] nats.

    values: kl, total_variation (raw distributions, temperature 1); kl_drawn, total_variation_drawn (those that codes
    are drawn from: temperature, repetition penalty, top-p, top-k); top1, share of equal most likely codes; nll, of
    the reference's tokens, nats a code, and nll_delta, its rise over the reference's; hidden_error, relative;
    flips, share of steps at which the reference's noise draws another code; first_flip_steps, steps before the first
    of them, T when there is none.
    """

    values: dict[str, float]
    by_codebook: dict[str, list[float]]
    kl_steps: FloatArray


def compare_forced(
    reference: Forced, candidate: Forced, codes: IntArray, *, params: SamplingParams, seed: int
) -> Figures:
    """Figures of a candidate on the reference's codes [T, C]; `seed` drew them (row 0). ValueError for other shapes."""
    if reference.logits.shape != candidate.logits.shape or len(codes) + 1 != len(candidate.logits):
        raise ValueError(
            f"logits {candidate.logits.shape} against {reference.logits.shape} for {len(codes)} steps of codes"
        )
    steps = len(codes)
    before, after = log_softmax(reference.logits), log_softmax(candidate.logits)
    kl = (np.exp(before) * (before - after)).sum(-1)  # [T + 1, C]
    nll_before, nll = (token_nll(each, codes) for each in (before, after))
    drawn = [drawn_distributions(each.logits, codes, params) for each in (reference, candidate)]
    floored = np.log(np.maximum(drawn, LEAST_PROBABILITY))
    by_step = {
        "kl": kl,
        "total_variation": _variation(np.exp(before), np.exp(after)),
        "kl_drawn": (drawn[0] * (floored[0] - floored[1])).sum(-1),
        "total_variation_drawn": _variation(*drawn),
        "top1": (before.argmax(-1) == after.argmax(-1)).astype(np.float64),
        "nll": nll,
        "nll_delta": nll - nll_before,
    }
    noise = RowNoise(seed, 0)
    shape = (*codes.shape[1:], candidate.logits.shape[-1])
    redrawn = np.stack([sample(drawn[1][t], noise.exponential(t, shape)) for t in range(steps)])
    flipped = (redrawn != codes).any(-1)  # [T]
    values = {name: float(each.mean()) for name, each in by_step.items()}
    values["hidden_error"] = relative_error(candidate.hidden, reference.hidden)
    values["flips"] = float(flipped.mean())
    values["first_flip_steps"] = float(flipped.argmax() if flipped.any() else steps)
    return Figures(values, {name: each.mean(0).tolist() for name, each in by_step.items()}, kl)


def log_softmax(logits: FloatArray) -> FloatArray:
    """Over the last axis, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(-1, keepdims=True)))


def token_nll(log_probabilities: FloatArray, codes: IntArray) -> FloatArray:
    """Negative log-likelihood of codes [T, C] under the first T rows, [T, C]."""
    picked = np.take_along_axis(log_probabilities[: len(codes)], codes[..., None], -1)
    return np.asarray(-picked[..., 0])


def relative_error(found: FloatArray, wanted: FloatArray) -> float:
    """Mean over steps of |found - wanted| / |wanted|, rows [T, D]."""
    norm = np.linalg.norm(wanted, axis=-1)
    return float((np.linalg.norm(found - wanted, axis=-1) / np.maximum(norm, 1e-12)).mean())


def drawn_distributions(logits: FloatArray, codes: IntArray, params: SamplingParams) -> FloatArray:
    """The distributions that codes are drawn from, [T + 1, C, V], each after the codes before it."""
    end = logits.shape[-1] - 1
    scores = [
        process_logits(logits[None, t].astype(np.float32), codes[None, :t], params, step=t, end=end)[0]
        for t in range(len(logits))
    ]
    return np.asarray(softmax(np.stack(scores)), dtype=np.float64)


def _variation(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(np.abs(p - q).sum(-1) / 2)
