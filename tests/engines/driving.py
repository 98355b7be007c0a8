"""Inputs for GPT stages, and what a stage makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import GptStage, StepOutput


def prompts(
    lengths: tuple[int, ...], vocabulary: int, speaker_token: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Left-padded ids and mask; each row begins with the speaker's token, and the padding is not zero."""
    rng = np.random.default_rng(1)
    batch, longest = len(lengths), max(lengths)
    starts = longest - np.array(lengths)
    ids = rng.integers(0, vocabulary, (batch, longest))
    ids[np.arange(batch), starts] = speaker_token
    return ids, np.arange(longest)[None] >= starts[:, None]


def codes(steps: int, batch: int) -> NDArray[Any]:
    return np.random.default_rng(2).integers(0, 625, (steps, batch, 4))


def drive(
    stage: GptStage, ids: NDArray[Any], mask: NDArray[Any], speaker: NDArray[Any] | None, fed: NDArray[Any]
) -> list[StepOutput]:
    """Prefill, then one step for each of `fed` [steps, B, 4]."""
    stage.reset(len(ids), ids.shape[1] + len(fed))
    return [stage.prefill(ids, mask, speaker), *(stage.step(each) for each in fed)]


def largest_difference(some: list[StepOutput], others: list[StepOutput]) -> float:
    """Over logits and hidden states of all steps."""
    pairs = zip(some, others, strict=True)
    return max(float(np.abs(a - b).max()) for x, y in pairs for a, b in zip(x, y, strict=True))
