"""The inverse short-time Fourier transform in NumPy, for vocoder graphs that stop at the spectrum.

The same transform as `labkit.model.istft`, by a fast Fourier transform instead of a matrix product; needs no torch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def inverse_stft(real: Array, imag: Array, hop: int) -> Array:
    """(real, imag) [B, n_fft/2 + 1, T] each -> audio [B, hop*(T - 1)] float32; `n_fft` is a multiple of `hop`."""
    frames = np.fft.irfft((real + 1j * imag).astype(np.complex64), axis=1)  # [B, n_fft, T]
    n_fft = frames.shape[1]
    # periodic Hann, which np.hanning is not
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n_fft) / n_fft)).astype(np.float32)
    audio = _overlap_add(frames.swapaxes(1, 2) * window, hop)
    envelope = _overlap_add(np.broadcast_to(window**2, (1, real.shape[2], n_fft)), hop)
    edge = n_fft // 2
    result: Array = (audio[:, edge:-edge] / envelope[:, edge:-edge]).astype(np.float32)
    return result


def _overlap_add(frames: Array, hop: int) -> Array:
    """[B, T, n_fft] -> [B, n_fft + hop*(T - 1)]."""
    batch, count, n_fft = frames.shape
    overlap = n_fft // hop
    total = np.zeros((batch, count + overlap - 1, hop), np.float32)
    for k in range(overlap):
        total[:, k : k + count] += frames[:, :, k * hop : (k + 1) * hop]
    return total.reshape(batch, -1)
