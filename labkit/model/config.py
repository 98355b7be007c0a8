"""Sizes of every part of a ChatTTS voice, as frozen dataclasses.

The defaults are the published network's. `NANO` is the small voice of the same architecture that the lab trains.
Knows no weights and no tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ResidualScale = Literal["levels-1", "levels"]


@dataclass(frozen=True)
class AudioConfig:
    """The signal both ends agree on: 24 kHz, 1024-point windows every 256 samples, 100 HTK mels."""

    sample_rate: int = 24_000
    n_fft: int = 1024
    hop: int = 256
    n_mels: int = 100

    @property
    def samples_per_step(self) -> int:
        """Audio samples of one decode step: one step is two mel frames."""
        return 2 * self.hop

    @property
    def steps_per_second(self) -> float:
        """Decode steps that make one second of audio (46.875 for ChatTTS)."""
        return self.sample_rate / self.samples_per_step


@dataclass(frozen=True)
class GptConfig:
    """A Llama-style decoder over text and four parallel audio codes."""

    hidden: int = 768
    intermediate: int = 3072
    heads: int = 12
    layers: int = 20
    positions: int = 4096
    num_text_tokens: int = 21_178
    num_code_tokens: int = 626  # 5**4 codes of the quantizer, and the end mark
    num_codebooks: int = 4
    norm_eps: float = 1e-6
    rope_theta: float = 10_000.0

    def __post_init__(self) -> None:
        if self.hidden % self.heads or (self.hidden // self.heads) % 2:
            raise ValueError(
                f"GptConfig: hidden={self.hidden} needs {self.heads} heads of one even size; "
                "choose hidden divisible by 2*heads"
            )

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads

    @property
    def end_code(self) -> int:
        """The code that ends a row when any codebook samples it (625 for ChatTTS)."""
        return self.num_code_tokens - 1


@dataclass(frozen=True)
class ConvStackConfig:
    """A stack of ConvNeXt blocks between a convolutional stem and a 1x1 convolution."""

    idim: int
    odim: int
    hidden: int
    layers: int
    bottleneck: int
    kernel: int = 7
    dilation: int = 2


@dataclass(frozen=True)
class DvaeConfig:
    """Mel <-> codes. `dim` is the width of the mel side, `vq_dim` that of the quantizer's side."""

    dim: int = 512
    encoder: ConvStackConfig = field(default_factory=lambda: ConvStackConfig(512, 1024, 256, 12, 128))
    decoder: ConvStackConfig = field(default_factory=lambda: ConvStackConfig(512, 512, 256, 12, 128))
    vq_dim: int = 1024
    levels: tuple[int, ...] = (5, 5, 5, 5)
    groups: int = 2
    residuals: int = 2
    residual_scale: ResidualScale = "levels-1"

    def __post_init__(self) -> None:
        if self.vq_dim != 2 * self.decoder.idim or self.vq_dim % self.groups:
            raise ValueError(
                f"DvaeConfig: vq_dim={self.vq_dim} must be twice decoder.idim={self.decoder.idim} "
                f"(its halves are interleaved in time) and divisible by groups={self.groups}"
            )


@dataclass(frozen=True)
class VocoderConfig:
    """Vocos: ConvNeXt blocks at mel rate, then magnitude and phase of each frame."""

    dim: int = 512
    intermediate: int = 1536
    layers: int = 8


@dataclass(frozen=True)
class VoiceConfig:
    """Everything that fixes the shapes of a voice's weights."""

    gpt: GptConfig = field(default_factory=GptConfig)
    decoder: ConvStackConfig = field(default_factory=lambda: ConvStackConfig(384, 384, 512, 12, 128))
    dvae: DvaeConfig = field(default_factory=DvaeConfig)
    vocoder: VocoderConfig = field(default_factory=VocoderConfig)
    audio: AudioConfig = field(default_factory=AudioConfig)

    def __post_init__(self) -> None:
        if self.gpt.hidden != 2 * self.decoder.idim:
            raise ValueError(
                f"VoiceConfig: gpt.hidden={self.gpt.hidden} must be twice decoder.idim={self.decoder.idim}; "
                "the decoder splits each hidden state in two halves"
            )

    def blocks(self, stage: str, audio_path: str) -> int:
        """How many blocks of equal shape the network of a stage has; the codes path decodes with the DVAE."""
        if stage == "decoder":
            return (self.dvae.decoder if audio_path == "codes" else self.decoder).layers
        return {"gpt": self.gpt.layers, "vocoder": self.vocoder.layers}[stage]

    @classmethod
    def from_folder(cls, asset: Path) -> VoiceConfig:
        """Read the sizes of the voice in an asset folder; CheckpointError names what is missing or odd."""
        from labkit.model.layout import read_config

        return read_config(asset)


FULL = VoiceConfig()

NANO = VoiceConfig(
    gpt=GptConfig(hidden=192, intermediate=512, heads=4, layers=4, positions=1024, num_text_tokens=64),
    decoder=ConvStackConfig(96, 96, 128, 4, 64),
    dvae=DvaeConfig(
        dim=128,
        encoder=ConvStackConfig(128, 256, 128, 3, 64),
        decoder=ConvStackConfig(128, 128, 128, 4, 64),
        vq_dim=256,
    ),
    vocoder=VocoderConfig(dim=160, intermediate=480, layers=5),
)
"""Sizes of the nano voice (the text vocabulary is set by its training corpus)."""
