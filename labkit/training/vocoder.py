"""Stage `vocoder`: teach the small Vocos to turn log-mels, real ones and the DVAE's, into audio.

First with spectral losses alone (L1 on log-mels, and on four resolutions of the log spectrum); then, because those
leave a buzz that listeners and DNSMOS hear, a shorter phase in which three small spectrogram discriminators join in.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from labkit.model.config import VoiceConfig
from labkit.model.dvae import Dvae
from labkit.model.features import log_mel, magnitude
from labkit.model.vocoder import Vocoder
from labkit.training.corpus import Clip, pad_to_steps
from labkit.training.dvae import mel_of
from labkit.training.loop import Metrics, Running, Schedule, Stateful, train

RESOLUTIONS = ((256, 64), (512, 128), (1024, 256), (2048, 512))
DISCRIMINATOR_SIZES = (512, 1024, 2048)


@dataclass(frozen=True)
class VocoderStage:
    """`schedule` is for the spectral phase, `polish` for the adversarial one (0 steps: there is none)."""

    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=2600, peak=1e-3, floor=0.05, clip=5.0, betas=(0.8, 0.95))
    )
    polish: Schedule = field(
        default_factory=lambda: Schedule(steps=2700, peak=3e-4, floor=0.1, clip=5.0, betas=(0.8, 0.95))
    )
    seed: int = 2
    batch: int = 12
    frames: int = 64
    decoded_share: float = 0.6  # of the inputs come from the DVAE, the rest are real mels
    judge_rate: float = 4e-4
    adversarial_weight: float = 0.15
    feature_weight: float = 0.5
    discriminated: int = 6  # rows of a batch that the discriminators see


class SpectrogramDiscriminator(nn.Module):
    """Log spectrogram of one resolution -> a map of scores; its inner activations are compared too."""

    def __init__(self, n_fft: int, channels: int = 16) -> None:
        super().__init__()
        self.n_fft = n_fft
        widths = [1, *[channels] * 5]
        layers = [
            nn.Conv2d(a, b, (3, 9), stride=(1, 2) if i in (1, 2, 3) else 1, padding=(1, 4))
            for i, (a, b) in enumerate(pairwise(widths))
        ]
        self.layers = nn.ModuleList(weight_norm(layer) for layer in layers)
        self.score = weight_norm(nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, wave: Tensor) -> tuple[Tensor, list[Tensor]]:
        x = torch.log(magnitude(wave, self.n_fft, self.n_fft // 4) + 1e-3).transpose(1, 2)[:, None]
        features = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            features.append(x)
        return self.score(x), features


def spectral_losses(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(log-mel L1, mean over resolutions of log-magnitude L1 plus spectral convergence) of two waves [B, N]."""
    mel = (log_mel(predicted) - log_mel(target)).abs().mean()
    total = torch.zeros(())
    for n_fft, hop in RESOLUTIONS:
        a, b = magnitude(predicted, n_fft, hop), magnitude(target, n_fft, hop)
        logs = (torch.log(a + 1e-3) - torch.log(b + 1e-3)).abs().mean()
        total = total + logs + (a - b).norm() / (b.norm() + 1e-3)
    return mel, total / len(RESOLUTIONS)


class Adversary:
    """The discriminators with their own optimizer; judged and trained on a few rows of every batch."""

    def __init__(self, stage: VocoderStage) -> None:
        torch.manual_seed(stage.seed + 1)
        self.stage = stage
        self.judges = nn.ModuleList(SpectrogramDiscriminator(n) for n in DISCRIMINATOR_SIZES)
        self.optimizer = torch.optim.AdamW(self.judges.parameters(), lr=stage.judge_rate, betas=(0.8, 0.95))

    def companions(self) -> dict[str, Stateful]:
        return {"judges": self.judges, "judges_optimizer": self.optimizer}

    def loss(self, predicted: Tensor, target: Tensor) -> tuple[Tensor, Metrics]:
        """Train the judges once (hinge loss), then say what the vocoder should pay: fooling and feature matching."""
        real = [judge(target) for judge in self.judges]
        fake = [judge(predicted.detach()) for judge in self.judges]
        own = torch.stack(
            [F.relu(1 - r).mean() + F.relu(1 + f).mean() for (r, _), (f, _) in zip(real, fake, strict=True)]
        ).mean()
        self.optimizer.zero_grad(set_to_none=True)
        own.backward()
        self.optimizer.step()
        self.judges.requires_grad_(False)
        heard = [judge(predicted) for judge in self.judges]
        self.judges.requires_grad_(True)
        fooled = -torch.stack([score.mean() for score, _ in heard]).mean()
        matched = torch.stack(
            [
                (a.detach() - b).abs().mean()
                for (_, wanted), (_, found) in zip(real, heard, strict=True)
                for a, b in zip(wanted, found, strict=True)
            ]
        ).mean()
        loss = self.stage.adversarial_weight * fooled + self.stage.feature_weight * matched
        return loss, {"judges": own.item(), "matched": matched.item()}


def train_vocoder(
    stage: VocoderStage,
    config: VoiceConfig,
    dvae: Dvae,
    clips: Sequence[Clip],
    valid: Sequence[Clip],
    folder: Path,
    **running: Unpack[Running],
) -> Vocoder:
    hop = config.audio.hop
    waves, mels, decoded = [], [], []
    with torch.no_grad():
        for clip in [*clips, *valid[::4]]:
            mel = mel_of(clip)
            waves.append(torch.from_numpy(pad_to_steps(clip.audio)))
            mels.append(mel)
            decoded.append(dvae.decode(dvae.encode(mel[None]))[0])
    usable = [i for i in range(len(clips)) if mels[i].shape[1] >= stage.frames + 2]
    torch.manual_seed(stage.seed)
    vocoder = Vocoder(config.vocoder, config.audio)

    def draw(rng: random.Random) -> tuple[Tensor, Tensor]:
        inputs, targets = [], []
        for _ in range(stage.batch):
            i = rng.choice(usable)
            source = decoded[i] if rng.random() < stage.decoded_share else mels[i]
            a = rng.randrange(source.shape[1] - stage.frames)
            inputs.append(source[:, a : a + stage.frames])
            targets.append(waves[i][a * hop : (a + stage.frames - 1) * hop])
        return vocoder(torch.stack(inputs)), torch.stack(targets)

    def spectral_step(_: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        mel, spectrum = spectral_losses(*draw(rng))
        return mel + spectrum, {"mel": mel.item(), "spectrum": spectrum.item()}

    adversary = Adversary(stage)

    def polishing_step(_: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        predicted, target = draw(rng)
        mel, spectrum = spectral_losses(predicted, target)
        rows = slice(0, stage.discriminated)
        paid, figures = adversary.loss(predicted[rows], target[rows])
        return mel + spectrum + paid, {"mel": mel.item(), "spectrum": spectrum.item(), **figures}

    def validate() -> Metrics:
        losses = []
        for i in range(len(clips), len(waves)):
            predicted = vocoder(decoded[i][None])
            losses.append(
                [v.item() for v in spectral_losses(predicted, waves[i][None, : predicted.shape[1]])]
            )
        mel, spectrum = (sum(column) / len(losses) for column in zip(*losses, strict=True))
        return {"mel": mel, "spectrum": spectrum}

    modules = nn.ModuleDict({"vocoder": vocoder})
    run = partial(train, modules=modules, validate=validate, seed=stage.seed, **running)
    run("vocoder", folder, schedule=stage.schedule, step_function=spectral_step)
    if stage.polish.steps:
        run(
            "polish", folder / "polish", schedule=stage.polish, step_function=polishing_step,
            companions=adversary.companions(),
        )  # fmt: skip
    return vocoder
