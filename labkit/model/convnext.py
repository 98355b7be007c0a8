"""The 1-D ConvNeXt block that Decoder, DVAE and vocoder are all built from, and the stack around it.

Layout: channels first outside ([B, C, T]); the pointwise half works channels last, as linear layers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labkit.model.config import ConvStackConfig


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, LayerNorm, two linear layers with GELU, a learned scale, and the residual.

    `scale_init` starts the learned per-channel scale; 1e-6 (the published networks' start) trains too slowly for
    small budgets, hence the larger default.
    """

    def __init__(
        self, dim: int, intermediate: int, kernel: int = 7, dilation: int = 1, scale_init: float = 0.2
    ):
        super().__init__()
        self.dwconv = nn.Conv1d(
            dim, dim, kernel, padding=dilation * (kernel // 2), dilation=dilation, groups=dim
        )
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, intermediate)
        self.pwconv2 = nn.Linear(intermediate, dim)
        self.scale = nn.Parameter(torch.full((dim,), scale_init))

    def forward(self, x: Tensor) -> Tensor:  # x: [B, dim, T] -> the same shape
        y = self.norm(self.dwconv(x).transpose(1, 2))
        y = self.pwconv2(F.gelu(self.pwconv1(y))) * self.scale
        return x + y.transpose(1, 2)


class ConvStack(nn.Module):
    """Stem (3, GELU, 3), ConvNeXt blocks, 1x1 convolution: [B, idim, T] -> [B, odim, T]."""

    def __init__(self, config: ConvStackConfig):
        super().__init__()
        self.conv_in = nn.Sequential(
            nn.Conv1d(config.idim, config.bottleneck, 3, padding=1),
            nn.GELU(),
            nn.Conv1d(config.bottleneck, config.hidden, 3, padding=1),
        )
        self.blocks = nn.ModuleList(
            ConvNeXtBlock(config.hidden, 4 * config.hidden, config.kernel, config.dilation)
            for _ in range(config.layers)
        )
        self.conv_out = nn.Conv1d(config.hidden, config.odim, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_in(x)
        for block in self.blocks:
            x = block(x)
        return self.conv_out(x)
