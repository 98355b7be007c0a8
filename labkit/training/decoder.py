"""Stage `decoder`: teach the Decoder to turn the frozen GPT's hidden states into log-mels.

Hidden states are teacher-forced on the DVAE's codes, lightly corrupted, because in use they come from codes that were
sampled. They are computed once, for natural speech only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np
import torch
from torch import Tensor, nn

from labkit.model.config import VoiceConfig
from labkit.model.dvae import Decoder
from labkit.model.gpt import Gpt
from labkit.training.codes import Utterance
from labkit.training.dvae import mel_losses, rms_per_bin
from labkit.training.gpt import collate, embed
from labkit.training.loop import Metrics, Running, Schedule, train


@dataclass(frozen=True)
class DecoderStage:
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=9000, peak=2e-3, weight_decay=1e-4))
    seed: int = 4
    batch: int = 16
    steps: int = 40  # decode steps per training window
    corrupted: float = 0.06


def hidden_states(
    gpt: Gpt, utterance: Utterance, speaker: Tensor, rng: random.Random | None = None, corrupted: float = 0.0
) -> Tensor:
    """Hidden states [T, hidden] that predicted each of the utterance's codes."""
    end = gpt.config.end_code
    batch = collate([utterance], {utterance.voice: speaker}, end, rng, corrupted)
    with torch.no_grad():
        hidden = gpt(embed(gpt, batch), batch.mask)[0]
    first = len(utterance.ids) - 1
    return hidden[first : first + len(utterance.codes)]


def train_decoder(
    stage: DecoderStage,
    config: VoiceConfig,
    gpt: Gpt,
    pairs: Sequence[tuple[Utterance, Tensor]],
    valid: Sequence[tuple[Utterance, Tensor]],
    speakers: dict[str, np.ndarray],
    folder: Path,
    **running: Unpack[Running],
) -> Decoder:
    """`pairs` are utterances with their log-mels [n_mels, 2T]."""
    vectors = {name: torch.from_numpy(vector) for name, vector in speakers.items()}
    torch.manual_seed(stage.seed)
    rng = random.Random(stage.seed)
    hidden = [hidden_states(gpt, u, vectors[u.voice], rng, stage.corrupted) for u, _ in pairs]
    hidden_valid = [hidden_states(gpt, u, vectors[u.voice]) for u, _ in valid]
    decoder = Decoder(config.decoder, config.audio)
    decoder.coef = rms_per_bin([mel for _, mel in pairs[::5]])
    usable = [i for i, h in enumerate(hidden) if len(h) >= stage.steps]

    def step(_: int, rng: random.Random) -> tuple[Tensor, Metrics]:
        inputs, targets = [], []
        for _ in range(stage.batch):
            i = rng.choice(usable)
            a = rng.randrange(len(hidden[i]) - stage.steps + 1)
            inputs.append(hidden[i][a : a + stage.steps])
            targets.append(pairs[i][1][:, 2 * a : 2 * (a + stage.steps)])
        l1, delta = mel_losses(decoder(torch.stack(inputs)), torch.stack(targets))
        return l1 + 0.25 * delta, {"l1": l1.item()}

    def validate() -> Metrics:
        errors = [
            (decoder(h[None])[0] - mel).abs().mean().item()
            for h, (_, mel) in zip(hidden_valid, valid, strict=True)
        ]
        return {"l1": sum(errors) / len(errors)}

    modules = nn.ModuleDict({"decoder": decoder})
    train("decoder", folder, modules, stage.schedule, step, validate, seed=stage.seed, **running)
    return decoder
