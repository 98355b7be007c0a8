"""Features -> log-mel: the Decoder on GPT hidden states (the default path) and the DVAE on codes.

Both split a feature vector in two halves and interleave them in time, so one decode step makes two mel frames, and
both multiply the result by `coef`, a per-mel scale. The DVAE also encodes: log-mel -> codes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labkit.model.config import AudioConfig, ConvStackConfig, DvaeConfig
from labkit.model.convnext import ConvStack
from labkit.model.features import log_mel
from labkit.model.gfsq import GFSQ


class MelDecoder(nn.Module):
    """features [B, 2*idim, T] -> log-mel [B, n_mels, 2T]."""

    coef: Tensor  # [1, n_mels, 1]

    def __init__(self, config: ConvStackConfig, audio: AudioConfig):
        super().__init__()
        self.audio = audio
        self.register_buffer("coef", torch.ones(1, audio.n_mels, 1))
        self.decoder = ConvStack(config)
        self.out_conv = nn.Conv1d(config.odim, audio.n_mels, 3, padding=1, bias=False)

    def decode_features(self, features: Tensor) -> Tensor:
        halves = features.unflatten(1, (2, -1))  # [B, 2, idim, T]
        interleaved = halves.permute(0, 2, 3, 1).flatten(2)  # [B, idim, 2T]
        return self.out_conv(self.decoder(interleaved)) * self.coef


class Decoder(MelDecoder):
    """GPT hidden states [B, T, hidden] -> log-mel [B, n_mels, 2T]."""

    def forward(self, hidden: Tensor) -> Tensor:
        return self.decode_features(hidden.transpose(1, 2))


class Dvae(MelDecoder):
    """log-mel [B, n_mels, F] <-> codes [B, F // 2, groups*residuals]."""

    def __init__(self, config: DvaeConfig, audio: AudioConfig):
        super().__init__(config.decoder, audio)
        self.downsample_conv = nn.Sequential(
            nn.Conv1d(audio.n_mels, config.dim, 3, padding=1),
            nn.GELU(),
            nn.Conv1d(config.dim, config.dim, 4, stride=2, padding=1),
            nn.GELU(),
        )
        self.encoder = ConvStack(config.encoder)
        self.vq_layer = GFSQ(config)

    def encode_features(self, mel: Tensor) -> Tensor:
        """log-mel [B, n_mels, F] -> features before quantization [B, F // 2, vq_dim]."""
        return self.encoder(self.downsample_conv(mel / self.coef)).transpose(1, 2)

    def encode(self, mel: Tensor) -> Tensor:
        return self.vq_layer.encode(self.encode_features(mel))

    def encode_wave(self, wave: Tensor) -> Tensor:
        """24 kHz wave [B, N] -> codes [B, (1 + N // hop) // 2, 4]."""
        return self.encode(log_mel(wave, self.audio))

    def decode(self, codes: Tensor) -> Tensor:
        return self.decode_features(self.vq_layer.decode(codes).transpose(1, 2))

    def forward(self, codes: Tensor) -> Tensor:
        return self.decode(codes)
