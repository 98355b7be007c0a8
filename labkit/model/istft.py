"""Inverse short-time Fourier transform in real arithmetic, so that it exports to ONNX.

Equal to `torch.istft(center=True)` with a periodic Hann window: an inverse real DFT as one matrix product with the
window folded in, overlap-add, division by the overlapped squared window, and n_fft/2 samples cut from both ends.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class InverseStft(nn.Module):
    """(real, imag) [B, n_fft/2 + 1, T] each -> audio [B, hop*(T - 1)]. `n_fft` must be a multiple of `hop`."""

    basis: Tensor
    window_sq: Tensor

    def __init__(self, n_fft: int, hop: int):
        super().__init__()
        if n_fft % hop:
            raise ValueError(f"InverseStft: n_fft={n_fft} is not a multiple of hop={hop}")
        self.n_fft, self.hop, self.overlap = n_fft, hop, n_fft // hop
        window = torch.hann_window(n_fft, dtype=torch.float64)
        self.register_buffer("basis", (_inverse_dft(n_fft) * window).float(), persistent=False)
        self.register_buffer("window_sq", window.square().float().view(1, 1, n_fft), persistent=False)

    def forward(self, real: Tensor, imag: Tensor) -> Tensor:
        spectrum = torch.cat([real, imag], 1).transpose(1, 2)  # [B, T, n_fft + 2]
        audio = self._overlap_add(spectrum @ self.basis)
        envelope = self._overlap_add(self.window_sq.expand(1, real.shape[2], self.n_fft))
        edge = self.n_fft // 2
        return audio[:, edge:-edge] / envelope[:, edge:-edge]

    def _overlap_add(self, frames: Tensor) -> Tensor:  # [B, T, n_fft] -> [B, n_fft + hop*(T - 1)]
        blocks = frames.unflatten(2, (self.overlap, self.hop))  # [B, T, overlap, hop]
        last = self.overlap - 1
        total = F.pad(blocks[:, :, 0], (0, 0, 0, last))
        for k in range(1, self.overlap):
            total = total + F.pad(blocks[:, :, k], (0, 0, k, last - k))
        return total.flatten(1)


def _inverse_dft(n_fft: int) -> Tensor:
    """[n_fft + 2, n_fft] float64: rows are the real parts' cosines, then the imaginary parts' negated sines.

    Inner bins stand for themselves and their conjugates, hence their weight 2/n against 1/n for DC and Nyquist.
    """
    bins = torch.arange(n_fft // 2 + 1, dtype=torch.float64)
    weight = torch.full_like(bins, 2.0 / n_fft)
    weight[0] = weight[-1] = 1.0 / n_fft
    # the product is reduced modulo n_fft first: large angles would cost the float64 cosine its last digits
    turns = torch.outer(bins, torch.arange(n_fft, dtype=torch.float64)) % n_fft
    angle = turns * (2.0 * math.pi / n_fft)
    return torch.cat([weight[:, None] * torch.cos(angle), -weight[:, None] * torch.sin(angle)])
