"""Vocos: log-mel -> 24 kHz audio through one frame-rate ConvNeXt network and an inverse STFT."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labkit.model.config import AudioConfig, VocoderConfig
from labkit.model.convnext import ConvNeXtBlock
from labkit.model.istft import InverseStft

MAX_MAGNITUDE = 1e2


class Vocoder(nn.Module):
    """log-mel [B, n_mels, T] -> audio [B, hop*(T - 1)]."""

    def __init__(self, config: VocoderConfig, audio: AudioConfig):
        super().__init__()
        self.embed = nn.Conv1d(audio.n_mels, config.dim, 7, padding=3)
        self.norm = nn.LayerNorm(config.dim, eps=1e-6)
        self.blocks = nn.ModuleList(
            ConvNeXtBlock(config.dim, config.intermediate, scale_init=1.0 / config.layers)
            for _ in range(config.layers)
        )
        self.final_norm = nn.LayerNorm(config.dim, eps=1e-6)
        self.out = nn.Linear(config.dim, audio.n_fft + 2)
        self.istft = InverseStft(audio.n_fft, audio.hop)
        for module in self.modules():
            if isinstance(module, nn.Conv1d | nn.Linear):
                nn.init.normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def spectrum(self, mel: Tensor) -> tuple[Tensor, Tensor]:
        """log-mel [B, n_mels, T] -> (real, imag) of the spectrum, [B, n_fft/2 + 1, T] each."""
        x = self.norm(self.embed(mel).transpose(1, 2)).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        x = self.out(self.final_norm(x.transpose(1, 2))).transpose(1, 2)
        log_magnitude, phase = x.chunk(2, 1)
        magnitude = torch.clamp(torch.exp(log_magnitude), max=MAX_MAGNITUDE)
        return magnitude * torch.cos(phase), magnitude * torch.sin(phase)

    def forward(self, mel: Tensor) -> Tensor:
        return self.istft(*self.spectrum(mel))
