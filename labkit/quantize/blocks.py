"""A matrix in blocks of a few bits: codes, a scale and a zero point for each block of inputs of one output.

Arrays in, arrays out; it knows the layout that ONNX Runtime's MatMulNBits reads and no graph. A value is
`(code - zero) * scale`; without zero points the zero is the middle code, `2 ** (bits - 1)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labkit.quantize.feedback import round_with_feedback

FloatArray = NDArray[np.float32]
Algorithm = Literal["rtn", "hqq", "gptq"]

_TINY = np.float32(
    1e-30
)  # keeps a block of zeros from dividing by zero; its codes are zero whatever the scale
_HQQ_NORM = 0.7
_HQQ_STEPS = 8  # more change the error by less than one part in a hundred
_HQQ_BETA = 4.0  # chosen on a trained voice among 2, 4 and 10: the least squared error


@dataclass(frozen=True)
class Blocks:
    """codes [N, K / block, block] uint8, scales [N, K / block], zeros [N, K / block] uint8 or None."""

    codes: NDArray[np.uint8]
    scales: FloatArray
    zeros: NDArray[np.uint8] | None
    bits: int

    def restore(self) -> FloatArray:
        """The matrix that these blocks stand for, [K, N]."""
        zeros = 2 ** (self.bits - 1) if self.zeros is None else self.zeros[..., None].astype(np.float32)
        values = (self.codes.astype(np.float32) - zeros) * self.scales[..., None]
        return np.ascontiguousarray(values.reshape(len(values), -1).T)

    def packed(self) -> tuple[NDArray[np.uint8], FloatArray, NDArray[np.uint8] | None]:
        """(codes [N, K / block, block * bits / 8], scales [N * K / block], zeros) as MatMulNBits takes them.

        Two 4-bit codes share a byte, the earlier one in its low half; each output's zero points begin on a byte.
        """
        scales = self.scales.reshape(-1)
        if self.bits == 8:
            return self.codes, scales, None if self.zeros is None else self.zeros.reshape(-1)
        zeros = self.zeros
        if zeros is not None:
            zeros = _nibbles(np.pad(zeros, ((0, 0), (0, zeros.shape[1] % 2)))).reshape(-1)
        return _nibbles(self.codes), scales, zeros


def quantize_blocks(
    weight: FloatArray,
    *,
    bits: int,
    block: int,
    symmetric: bool,
    algorithm: Algorithm,
    gram: FloatArray | None = None,
) -> Blocks:
    """weight [K, N] of which `block` divides K, in `bits` (4 or 8).

    `rtn` rounds to the nearest of evenly spaced levels from the block's least to its largest value. `hqq` then moves
    levels so that a norm that forgives outliers gets smaller; it needs zero points (`symmetric=False`). `gptq` makes
    good for each rounding error in the weights that follow; it needs the `gram` matrix [K, K] of the inputs.
    """
    inputs, outputs = weight.shape
    if inputs % block:
        raise ValueError(f"quantize_blocks: block {block} does not divide {inputs} inputs")
    if algorithm == "hqq" and symmetric:
        raise ValueError("quantize_blocks: hqq moves zero points, so symmetric must be False")
    top = np.float32(2**bits - 1)
    values = np.ascontiguousarray(weight.T, np.float32).reshape(outputs, -1, block)
    if algorithm == "gptq":
        if gram is None:
            raise ValueError("quantize_blocks: gptq needs the Gram matrix of the inputs")
        codes, scales, zeros = round_with_feedback(
            weight,
            gram,
            block=block,
            levels=partial(_levels, bits=bits, symmetric=symmetric),
            limits=(0, float(top)),
        )
        codes = codes.reshape(values.shape)
    else:
        scales, zeros = _levels(values, bits, symmetric)
        if algorithm == "hqq":
            scales, zeros = _half_quadratic(values, scales, zeros, top)
        codes = _codes(values, scales, zeros, top)
    kept_zeros = None if symmetric else zeros.astype(np.uint8)
    return Blocks(codes.astype(np.uint8), scales.astype(np.float32), kept_zeros, bits)


def _levels(values: NDArray[Any], bits: int, symmetric: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scales and zero points [...] of evenly spaced levels that span each block of values [..., block].

    Symmetric: the value of largest magnitude becomes the lowest code, the only one without a mirror, so scales may be
    negative.
    """
    if symmetric:
        middle = 2 ** (bits - 1)
        peak = np.take_along_axis(values, np.abs(values).argmax(-1)[..., None], -1)[..., 0]
        scales = np.where(peak == 0, _TINY, peak / -middle)
        return scales.astype(values.dtype), np.full_like(peak, middle)
    low = np.minimum(values.min(-1), 0)  # zero stays a level, so that it is kept exactly
    high = np.maximum(values.max(-1), 0)
    top = 2**bits - 1
    scales = np.maximum((high - low) / top, _TINY)
    return scales, np.clip(np.rint(-low / scales), 0, top)


def _half_quadratic(
    values: FloatArray, scales: FloatArray, zeros: FloatArray, top: np.float32
) -> tuple[FloatArray, FloatArray]:
    """Scales and whole zero points that lower the sum of |error| ** 0.7 (half-quadratic quantization, Badri 2023).

    The published solver moves fractional zero points and keeps the scales. The fast kernels want whole zero points,
    so the scales are solved for too, by least squares on what is left of each weight without its outlying error.
    Blocks that got no better are left as they were.
    """
    unit = scales[..., None]
    first = scales, zeros
    for _ in range(_HQQ_STEPS):
        codes = _codes(values, scales, zeros, top)
        error: FloatArray = values - (codes - zeros[..., None]) * scales[..., None]
        target = values - _shrink(error / unit) * unit
        zeros = np.clip(np.rint((codes - target / scales[..., None]).mean(-1)), 0, top)
        steps = codes - zeros[..., None]
        square = (steps * steps).sum(-1)
        scales = np.where(square > 0, (target * steps).sum(-1) / np.maximum(square, 1), scales)
        scales = np.maximum(scales, _TINY)
    better = _norm(values, scales, zeros, top) < _norm(values, *first, top)
    return np.where(better, scales, first[0]), np.where(better, zeros, first[1])


def _codes(values: FloatArray, scales: FloatArray, zeros: FloatArray, top: np.float32) -> FloatArray:
    codes: FloatArray = np.clip(np.rint(values / scales[..., None] + zeros[..., None]), 0, top)
    return codes


def _norm(values: FloatArray, scales: FloatArray, zeros: FloatArray, top: np.float32) -> FloatArray:
    restored = (_codes(values, scales, zeros, top) - zeros[..., None]) * scales[..., None]
    error: FloatArray = (np.abs(values - restored) ** np.float32(_HQQ_NORM)).sum(-1)
    return error


def _shrink(error: FloatArray) -> FloatArray:
    """The proximal step of |e| ** 0.7, e in quantization steps: small errors vanish, large ones stay almost whole."""
    size = np.abs(error)
    reduced = size - np.power(size + np.float32(1e-8), np.float32(_HQQ_NORM - 1)) / np.float32(_HQQ_BETA)
    return np.sign(error) * np.maximum(reduced, 0)


def _nibbles(codes: NDArray[Any]) -> NDArray[np.uint8]:
    """Pairs along the last axis, which has an even length, put into one byte each."""
    packed: NDArray[np.uint8] = codes[..., 0::2] | (codes[..., 1::2] << np.uint8(4))
    return packed
