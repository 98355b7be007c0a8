"""Rounding that corrects itself (GPTQ): each weight's rounding error is made good by the weights not yet rounded.

What should stay the same is not the matrix but its products with the inputs that calibration saw. They are described
by the Gram matrix of those inputs, which `GramCollector` sums up batch by batch. Arrays only: no model, no file.

Source: Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ: accurate post-training quantization for generative pre-trained
transformers", ICLR 2023: columns in their own order, updates in blocks, and the inverse's Cholesky factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Levels = Callable[[Array], tuple[Array, Array]]
"""From values [N, n] to (scales [N], zero points [N]) of the levels to round them to."""

_DAMPING = 0.01  # share of the mean square input that is added to each, as published
_CHUNK = 128  # columns rounded one by one before the rest of the matrix is updated at once


class GramCollector:
    """The sum of x xT over all input vectors x seen, [K, K] float32."""

    def __init__(self) -> None:
        self._sum: NDArray[np.float32] | None = None

    def collect(self, x: Array) -> None:
        """x [..., K]. ValueError when it is not finite."""
        rows = np.ascontiguousarray(x, np.float32).reshape(-1, x.shape[-1])
        gram = rows.T @ rows
        if not np.isfinite(np.trace(gram)):
            raise ValueError(f"a tensor of shape {x.shape} holds values that are not finite.")
        if self._sum is None:
            self._sum = gram
        else:
            self._sum += gram

    def gram(self) -> NDArray[np.float32]:
        """RuntimeError before any data."""
        if self._sum is None:
            raise RuntimeError("GramCollector: nothing was collected; call collect first.")
        return self._sum


def round_with_feedback(
    weight: Array, gram: Array, *, block: int, levels: Levels, limits: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """weight [K, N] as (codes [N, K], scales [N, K / block], zeros [N, K / block]): (code - zero) * scale.

    gram [K, K] of the inputs; `levels` is asked for each block of inputs when its turn comes, with what the weights
    have become by then; codes are whole numbers within `limits`.
    """
    rows = np.array(weight.T, np.float64)  # [N, K]
    inputs = rows.shape[1]
    factor = _inverse_factor(gram)
    codes = np.empty_like(rows)
    scales, zeros = (np.empty((len(rows), inputs // block)) for _ in range(2))
    for at, first in enumerate(range(0, inputs, block)):
        scales[:, at], zeros[:, at] = levels(rows[:, first : first + block])
        for start in range(first, first + block, _CHUNK):
            end = min(start + _CHUNK, first + block)
            errors = np.empty((len(rows), end - start))
            for k in range(start, end):
                codes[:, k] = np.clip(np.rint(rows[:, k] / scales[:, at] + zeros[:, at]), *limits)
                rounded = (codes[:, k] - zeros[:, at]) * scales[:, at]
                errors[:, k - start] = (rows[:, k] - rounded) / factor[k, k]
                rows[:, k + 1 : end] -= np.outer(errors[:, k - start], factor[k, k + 1 : end])
            rows[:, end:] -= errors @ factor[start:end, end:]
    return codes, scales, zeros


def _inverse_factor(gram: Array) -> NDArray[np.float64]:
    """The upper triangle U with UT U = inverse of the damped Gram matrix."""
    from scipy.linalg import solve_triangular

    square = np.array(gram, np.float64)
    square[np.diag_indices_from(square)] += _DAMPING * np.trace(square) / len(square) or 1.0
    # the Cholesky factor of the reversed matrix, reversed back, is upper: square = R RT, so U = inverse of R
    upper = np.linalg.cholesky(square[::-1, ::-1])[::-1, ::-1]
    factor: NDArray[np.float64] = solve_triangular(upper, np.eye(len(upper)), lower=False)
    return factor
