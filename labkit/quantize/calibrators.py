"""From what a tensor was seen to hold, to the range that its integers should span (its `amax`).

Names and numbers are those of NVIDIA's pytorch-quantization 2.1.3, in NumPy and without its GPU: `MaxCalibrator` keeps
the largest magnitude, `HistogramCalibrator` counts magnitudes and chooses a range that clips a little. Give each
`collect` one batch, then ask `compute_amax`. Knows arrays only: no model, no file, no graph.

The methods: `percentile` clips a share of the values; `mse` minimizes the squared rounding and clipping error;
`entropy` minimizes the Kullback-Leibler divergence of the rounded distribution from the seen one (S. Migacz, "8-bit
inference with TensorRT", GTC 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Method = Literal["entropy", "mse", "percentile"]
METHODS: tuple[Method, ...] = ("entropy", "mse", "percentile")

_SMALLEST_AMAX = np.float32(2.0**-24)
"""Below the smallest positive half-precision number a range counts as zero."""


class MaxCalibrator:
    """The largest magnitude seen, of the whole tensor or of each index along `axis`.

    `num_bits` and `unsigned` say what the range is for; the largest magnitude is the same for all of them.
    """

    def __init__(self, num_bits: int, axis: int | Sequence[int] | None, unsigned: bool) -> None:
        self.num_bits, self.axis, self.unsigned = num_bits, axis, unsigned
        self._amax: NDArray[np.float32] | None = None

    def collect(self, x: Floats) -> None:
        """Look at one tensor. ValueError when it is empty, not finite, or of another width than before."""
        magnitude = _magnitudes(x)
        kept = () if self.axis is None else (self.axis,) if isinstance(self.axis, int) else tuple(self.axis)
        kept = tuple(axis % magnitude.ndim for axis in kept)
        reduced = tuple(i for i in range(magnitude.ndim) if i not in kept)
        amax = magnitude.max(axis=reduced, keepdims=bool(kept))
        if self._amax is None:
            self._amax = amax
        elif self._amax.shape != amax.shape:
            raise ValueError(
                f"MaxCalibrator: a tensor of shape {x.shape} has ranges of shape {amax.shape}, "
                f"earlier ones {self._amax.shape}."
            )
        else:
            self._amax = np.maximum(self._amax, amax)

    def compute_amax(self) -> NDArray[np.float32]:
        """The range: a scalar array, or one that keeps `axis` and has 1 elsewhere. RuntimeError before any data."""
        if self._amax is None:
            raise RuntimeError("MaxCalibrator: nothing was collected; call collect first.")
        return np.asarray(self._amax, dtype=np.float32)

    def reset(self) -> None:
        """Forget what was seen."""
        self._amax = None


class HistogramCalibrator:
    """Counts of magnitudes in bins of equal width; one range for the whole tensor, whence `axis` must be None.

    The first batch fixes the width (its largest magnitude / `num_bins`); larger values later add bins.
    """

    def __init__(
        self, num_bits: int, axis: None, unsigned: bool, num_bins: int = 2048, skip_zeros: bool = False
    ) -> None:
        if axis is not None:
            raise ValueError(
                f"HistogramCalibrator: axis is {axis!r}, but a histogram gives one range for a whole tensor; "
                "use MaxCalibrator."
            )
        self.num_bits, self.unsigned = num_bits, unsigned
        self.num_bins, self.skip_zeros = num_bins, skip_zeros
        self.reset()

    def reset(self) -> None:
        """Forget what was seen."""
        self._counts = np.zeros(0, dtype=np.int64)
        self._width = np.float32(0)
        self._zeros = 0  # values seen before any that is not zero, which bin 0 will hold

    def collect(self, x: Floats) -> None:
        """Count one tensor's magnitudes. ValueError when it is empty or not finite."""
        magnitude = _magnitudes(x).ravel()
        if self.skip_zeros:
            magnitude = magnitude[magnitude != 0]
        largest = magnitude.max(initial=np.float32(0))
        if len(self._counts) == 0:
            if largest == 0:
                self._zeros += magnitude.size
                return
            self._counts = np.zeros(self.num_bins, dtype=np.int64)
            self._counts[0], self._width = self._zeros, np.float32(largest / np.float32(self.num_bins))
            top = largest
        else:
            more = int(np.ceil(largest / self._width)) - len(self._counts)
            if more > 0:
                self._counts = np.pad(self._counts, (0, more))
            top = self._edges[-1]
        bins = len(self._counts)
        place = (magnitude / top * np.float32(bins)).astype(np.int64)
        self._counts += np.bincount(np.minimum(place, bins - 1), minlength=bins)

    def compute_amax(
        self, method: Method, *, stride: int = 1, start_bin: int = 128, percentile: float = 99.99
    ) -> float:
        """The range by a method. Ranges of fewer than `start_bin` bins are not tried by `entropy` and `mse`.

        ValueError for an unknown method or an impossible percentile, RuntimeError before any data.
        """
        if method not in METHODS:
            raise ValueError(f"calibration method {method!r} is unknown; methods: {', '.join(METHODS)}.")
        if not 0 <= percentile <= 100:
            raise ValueError(f"percentile {percentile} is not in 0..100.")
        if len(self._counts) == 0:
            if self._zeros:
                return 0.0
            raise RuntimeError("HistogramCalibrator: nothing was collected; call collect first.")
        levels = 1 << (self.num_bits - 1 + int(self.unsigned))
        if method == "percentile":
            return _percentile(self._counts, self._edges, percentile)
        if method == "entropy":
            return _entropy(self._counts, self._edges, levels, stride, start_bin)
        return _mse(self._counts, self._edges, levels - 1, stride, start_bin)

    @property
    def _edges(self) -> NDArray[np.float32]:
        return np.arange(len(self._counts) + 1, dtype=np.float32) * self._width


def _percentile(counts: NDArray[np.int64], edges: Floats, percentile: float) -> float:
    share = np.cumsum(counts / counts.sum())
    return float(edges[np.searchsorted(share, percentile / 100)])


def _mse(counts: NDArray[np.int64], edges: Floats, largest_code: int, stride: int, start_bin: int) -> float:
    """Try each bin's centre as the range and round all centres with it, in float32 as a network would."""
    centres = (edges[1:] + edges[:-1]) / np.float32(2)
    candidates = np.arange(min(start_bin, len(centres) - 1), len(centres), stride)
    errors = np.empty(len(candidates), dtype=np.float32)
    for i, candidate in enumerate(candidates):
        amax = centres[candidate]
        if amax <= _SMALLEST_AMAX:
            rounded = np.zeros_like(centres)
        else:
            scale = np.float32(largest_code) / amax
            rounded = np.minimum(np.rint(centres * scale), np.float32(largest_code)) / scale
        errors[i] = ((rounded - centres) ** 2 * counts).mean()
    return float(centres[candidates[errors.argmin()]])


def _entropy(counts: NDArray[np.int64], edges: Floats, levels: int, stride: int, start_bin: int) -> float:
    """Try ranges of `start_bin` bins and more; of equal divergences the widest range wins.

    The seen distribution puts all that is clipped into its last bin. The rounded one spreads each level's counts evenly
    over those of its bins that hold any. Exact zeros, which are frequent and never clipped, would dominate: bin 0 takes
    the count of bin 1.
    """
    counts = counts.copy()
    counts[0] = counts[min(1, len(counts) - 1)]
    tried = np.arange(min(start_bin, len(counts)), len(counts) + 1, stride)
    divergences = np.array([_divergence(counts, int(width), levels) for width in tried])
    best = len(tried) - 1 - int(divergences[::-1].argmin())
    return float(edges[tried[best]])


def _divergence(counts: NDArray[np.int64], width: int, levels: int) -> float:
    """Kullback-Leibler divergence in nats of the rounded from the seen distribution; infinite where it has a hole."""
    kept = counts[:width]
    seen = kept.astype(np.float64)
    seen[-1] += counts[width:].sum()
    level = np.searchsorted(np.linspace(0, width, levels + 1), np.arange(width), side="right") - 1
    filled = kept > 0
    sums = np.bincount(level[filled], kept[filled], levels)
    members = np.bincount(level[filled], minlength=levels)
    rounded = np.where(filled, sums[level] / np.maximum(members[level], 1), 0.0)
    if rounded.sum() == 0 or (seen[~filled] > 0).any():
        return np.inf
    p, q = seen[filled] / seen.sum(), rounded[filled] / rounded.sum()
    return float((p * np.log(p / q)).sum())


def _magnitudes(x: Floats) -> NDArray[np.float32]:
    if x.size == 0:
        raise ValueError(f"a tensor of shape {x.shape} holds no values to calibrate on.")
    magnitude = np.abs(np.asarray(x, dtype=np.float32))
    if not np.isfinite(magnitude).all():
        raise ValueError(f"a tensor of shape {x.shape} holds values that are not finite; they give no range.")
    return magnitude
