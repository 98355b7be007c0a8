"""Stages `vocoder` and `tune`: teach the small Vocos to turn log-mels into audio.

First with spectral losses alone (L1 on log-mels, and on four resolutions of the log spectrum). Those leave a buzz that
listeners and DNSMOS hear, so a polish follows in which discriminators join in. Up to here the mels are real ones and
the DVAE's. When GPT and Decoder are there, the polish goes on with the Decoder's mels, blurred in a way of their own,
and the Decoder learns along: what the vocoder cannot say well comes back to it, and its own L1 keeps its mels mels.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Unpack

import torch
from torch import Tensor, nn

from labkit.model.config import VoiceConfig
from labkit.model.dvae import Decoder
from labkit.model.features import log_mel, magnitude
from labkit.model.vocoder import Vocoder
from labkit.training.adversary import Adversary, AdversaryPrice
from labkit.training.dvae import mel_losses
from labkit.training.loop import Metrics, Running, Schedule, part, train

RESOLUTIONS = ((256, 64), (512, 128), (1024, 256), (2048, 512))


def _polishing(steps: int, peak: float) -> Schedule:
    return Schedule(steps=steps, peak=peak, floor=0.1, clip=5.0, betas=(0.8, 0.95))


@dataclass(frozen=True)
class VocoderStage:
    """`schedule` is for the spectral phase, `polish` for the adversarial one (0 steps: there is none)."""

    schedule: Schedule = field(
        default_factory=lambda: Schedule(steps=2600, peak=1e-3, floor=0.05, clip=5.0, betas=(0.8, 0.95))
    )
    polish: Schedule = field(default_factory=lambda: _polishing(2700, 3e-4))
    tune: Schedule = field(default_factory=lambda: _polishing(1600, 2e-4))
    seed: int = 2
    frames: int = 64
    # A batch: so many rows with mels of each kind. The discriminators see the first ones.
    rows: Mapping[str, int] = field(default_factory=lambda: {"dvae": 7, "real": 5})
    tune_rows: Mapping[str, int] = field(default_factory=lambda: {"decoder": 8, "dvae": 2, "real": 2})
    mel_weight: float = 1.0  # of the Decoder's own loss in the tuning
    price: AdversaryPrice = field(default_factory=AdversaryPrice)


@dataclass(frozen=True)
class Heard:
    """One clip: wave [N], log-mels [n_mels, 2T] by whose they are, N about 2T hop; GPT hidden states [T, hidden]."""

    wave: Tensor
    mels: Mapping[str, Tensor]
    hidden: Tensor | None = None


def spectral_losses(predicted: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """(log-mel L1, mean over resolutions of log-magnitude L1 plus spectral convergence) of two waves [B, N]."""
    mel = (log_mel(predicted) - log_mel(target)).abs().mean()
    total = torch.zeros(())
    for n_fft, hop in RESOLUTIONS:
        a, b = magnitude(predicted, n_fft, hop), magnitude(target, n_fft, hop)
        logs = (torch.log(a + 1e-3) - torch.log(b + 1e-3)).abs().mean()
        total = total + logs + (a - b).norm() / (b.norm() + 1e-3)
    return mel, total / len(RESOLUTIONS)


class VocoderTraining:
    """A vocoder with its discriminators and the speech it learns from; with a Decoder, both learn."""

    def __init__(
        self,
        stage: VocoderStage,
        config: VoiceConfig,
        clips: Sequence[Heard],
        valid: Sequence[Heard],
        decoder: Decoder | None = None,
    ) -> None:
        self.stage, self.hop, self.decoder = stage, config.audio.hop, decoder
        self.clips = [c for c in clips if c.mels["real"].shape[1] >= stage.frames + 2]
        self.valid = valid
        torch.manual_seed(stage.seed)
        self.vocoder = Vocoder(config.vocoder, config.audio)
        self.adversary = Adversary(stage.price, stage.seed + 1)
        self.modules = nn.ModuleDict({"vocoder": self.vocoder})
        if decoder is not None:
            self.modules["decoder"] = decoder

    def draw(self, rows: Mapping[str, int], rng: random.Random) -> tuple[Tensor, Tensor, Tensor]:
        """(mels given [B, n_mels, F], real mels, waves [B, (F - 1) hop]) of windows at random even frames."""
        frames = self.stage.frames
        given, real, waves = [], [], []
        for source, count in rows.items():
            for _ in range(count):
                clip = rng.choice(self.clips)
                a = 2 * rng.randrange((clip.mels["real"].shape[1] - frames) // 2)
                real.append(clip.mels["real"][:, a : a + frames])
                waves.append(clip.wave[a * self.hop : (a + frames - 1) * self.hop])
                given.append(
                    self._decode(clip, a // 2, (a + frames) // 2)
                    if source == "decoder"
                    else clip.mels[source][:, a : a + frames]
                )
        return torch.stack(given), torch.stack(real), torch.stack(waves)

    def _decode(self, clip: Heard, start: int = 0, stop: int | None = None) -> Tensor:
        """The Decoder's mel [n_mels, 2T] of the steps from start to stop."""
        assert self.decoder is not None and clip.hidden is not None, "only a Decoder reads hidden states"
        return self.decoder(clip.hidden[None, start:stop])[0]

    def spectral_step(self, _: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        given, _real, wave = self.draw(self.stage.rows, rng)
        mel, spectrum = spectral_losses(self.vocoder(given), wave)
        return mel + spectrum, {"mel": mel.item(), "spectrum": spectrum.item()}

    def polishing_step(self, _: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        given, _real, wave = self.draw(self.stage.rows, rng)
        return self._polishing_loss(given, wave)

    def tuning_step(self, _: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        given, real, wave = self.draw(self.stage.tune_rows, rng)
        loss, figures = self._polishing_loss(given, wave)
        made = self.stage.tune_rows["decoder"]
        l1, delta = mel_losses(given[:made], real[:made])
        return loss + self.stage.mel_weight * (l1 + 0.25 * delta), {**figures, "l1": l1.item()}

    def _polishing_loss(self, given: Tensor, wave: Tensor) -> tuple[Tensor, Metrics]:
        predicted = self.vocoder(given)
        mel, spectrum = spectral_losses(predicted, wave)
        rows = slice(0, self.stage.price.rows)
        paid, figures = self.adversary.loss(predicted[rows], wave[rows])
        return mel + spectrum + paid, {"mel": mel.item(), "spectrum": spectrum.item(), **figures}

    def validate(self) -> Metrics:
        """Of held-out clips as the path in training makes them: by the Decoder where there is one, else the DVAE."""
        losses = []
        for clip in self.valid:
            given = clip.mels["dvae"] if self.decoder is None else self._decode(clip)
            predicted = self.vocoder(given[None])
            wave = clip.wave[None, : predicted.shape[1]]
            losses.append([v.item() for v in spectral_losses(predicted, wave)])
        mel, spectrum = (sum(column) / len(losses) for column in zip(*losses, strict=True))
        return {"mel": mel, "spectrum": spectrum}


def train_vocoder(
    stage: VocoderStage,
    config: VoiceConfig,
    clips: Sequence[Heard],
    valid: Sequence[Heard],
    folder: Path,
    **running: Unpack[Running],
) -> Vocoder:
    """The spectral phase into `folder`, then the polish into `folder/polish`; needs mels "real" and "dvae"."""
    training = VocoderTraining(stage, config, clips, valid)
    run = partial(train, modules=training.modules, validate=training.validate, seed=stage.seed, **running)
    run("vocoder", folder, schedule=stage.schedule, step_function=training.spectral_step)
    if stage.polish.steps:
        run(
            "polish", folder / "polish", schedule=stage.polish, step_function=training.polishing_step,
            companions=training.adversary.companions(),
        )  # fmt: skip
    return training.vocoder


def tune(
    stage: VocoderStage,
    config: VoiceConfig,
    decoder: Decoder,
    clips: Sequence[Heard],
    valid: Sequence[Heard],
    polished: Path,
    folder: Path,
    **running: Unpack[Running],
) -> None:
    """Go on from the checkpoint `polished`, judges and all, with the Decoder in front; clips have `hidden`."""
    training = VocoderTraining(stage, config, clips, valid, decoder)
    state = torch.load(polished, weights_only=True)
    training.vocoder.load_state_dict(part(state["modules"], "vocoder"))
    for name, companion in training.adversary.companions().items():
        companion.load_state_dict(state[name])
    train(
        "tune", folder, training.modules, stage.tune, training.tuning_step, training.validate,
        seed=stage.seed, companions=training.adversary.companions(), **running,
    )  # fmt: skip
