"""A matrix in INT8 with one scale for each output: how `int8-dynamic` and `int8-static` keep weights. Arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.quantize.feedback import round_with_feedback

_TINY = 1e-30  # keeps an output of zeros from dividing by zero


def quantize_channels(
    weight: NDArray[np.float32],
    *,
    gram: NDArray[np.float32] | None = None,
    per_channel: bool = True,
    top: int = 127,
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """weight [K, N] as (codes [K, N] within -top..top, scales [N], or [] unless `per_channel`).

    Rounded to the nearest, or with feedback (GPTQ) when the Gram matrix [K, K] of the inputs is given.
    """

    def levels(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        largest = np.abs(rows).max(1) if per_channel else np.full(len(rows), np.abs(rows).max())
        return np.maximum(largest, _TINY) / top, np.zeros(len(rows))

    if gram is None:
        rows = np.ascontiguousarray(weight.T)
        scales = levels(rows)[0]
        codes = np.clip(np.rint(rows / scales[:, None]), -top, top)
    else:
        codes, blocks, _ = round_with_feedback(
            weight, gram, block=len(weight), levels=levels, limits=(-top, top)
        )
        scales = blocks[:, 0]
    kept = scales if per_channel else scales[0]
    return np.ascontiguousarray(codes.T).astype(np.int8), np.asarray(kept, np.float32)
