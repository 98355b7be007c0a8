"""Stage `dvae`: teach the DVAE to turn log-mels into four codes a step, and back.

L1 on log-mels plus a quarter of it on their differences in time. The finer residual stage is dropped now and then and
codes are jittered, so that the mel survives the wrong second-residual codes that a GPT will draw.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import torch
from torch import Tensor, nn

from labkit.model.config import VoiceConfig
from labkit.model.dvae import Dvae
from labkit.model.features import log_mel
from labkit.training.corpus import Clip, pad_to_steps
from labkit.training.loop import Metrics, Running, Schedule, train


@dataclass(frozen=True)
class DvaeStage:
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=3200, peak=2e-3, weight_decay=1e-4))
    seed: int = 1
    clips: Mapping[str, int] = field(
        default_factory=lambda: {"digits": 240, "domain": 480}
    )  # the first so many
    batch: int = 16
    frames: int = 96
    jitter: tuple[float, ...] = (0.02, 0.1)
    residual_dropout: float = 0.2


def mel_of(clip: Clip) -> Tensor:
    """log-mel [n_mels, 2k + 2] of a clip padded to whole steps."""
    return log_mel(torch.from_numpy(pad_to_steps(clip.audio))[None])[0]


def rms_per_bin(mels: Sequence[Tensor]) -> Tensor:
    """`coef`, by which both ends of a mel decoder divide and multiply: RMS of each log-mel bin, [1, n_mels, 1]."""
    return torch.cat(list(mels), 1).pow(2).mean(1).sqrt()[None, :, None]


def mel_losses(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(L1, L1 of the differences in time) of two [B, n_mels, T]."""
    l1 = (predicted - target).abs().mean()
    delta = (predicted.diff(dim=2) - target.diff(dim=2)).abs().mean()
    return l1, delta


def reconstruct(dvae: Dvae, mel: Tensor, jitter: tuple[float, ...] = (), dropout: float = 0.0) -> Tensor:
    """mel [B, n_mels, F] through the quantizer and back."""
    features, _ = dvae.vq_layer(dvae.encode_features(mel), jitter, dropout)
    return dvae.decode_features(features.transpose(1, 2))


def perplexities(codes: Tensor, size: int) -> list[float]:
    """How many codes each of the four streams really uses, as exp(entropy). codes [N, 4]."""
    counts = torch.stack([torch.bincount(codes[:, q], minlength=size).float() for q in range(codes.shape[1])])
    share = counts / counts.sum(1, keepdim=True)
    return torch.exp(-(share * (share + 1e-9).log()).sum(1)).tolist()


def train_dvae(
    stage: DvaeStage,
    config: VoiceConfig,
    clips: Sequence[Clip],
    valid: Sequence[Clip],
    folder: Path,
    **running: Unpack[Running],
) -> Dvae:
    mels = [mel_of(clip) for clip in clips]
    valid_mels = [mel_of(clip) for clip in valid[::3]]
    stream = torch.cat(mels, 1)
    torch.manual_seed(stage.seed)
    dvae = Dvae(config.dvae, config.audio)
    dvae.coef = rms_per_bin(mels)

    def step(_: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        starts = [rng.randrange(stream.shape[1] - stage.frames) for _ in range(stage.batch)]
        mel = torch.stack([stream[:, a : a + stage.frames] for a in starts])
        l1, delta = mel_losses(reconstruct(dvae, mel, stage.jitter, stage.residual_dropout), mel)
        return l1 + 0.25 * delta, {"l1": l1.item()}

    def validate() -> Metrics:
        errors, codes = [], []
        for mel in valid_mels:
            codes.append(dvae.encode(mel[None])[0])
            errors.append((dvae.decode(codes[-1][None])[0] - mel).abs().mean().item())
        used = perplexities(torch.cat(codes), config.gpt.end_code)
        return {"l1": sum(errors) / len(errors), **{f"perplexity_{q}": p for q, p in enumerate(used)}}

    modules = nn.ModuleDict({"dvae": dvae})
    train("dvae", folder, modules, stage.schedule, step, validate, seed=stage.seed, **running)
    return dvae
