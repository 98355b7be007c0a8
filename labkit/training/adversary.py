"""Three small spectrogram discriminators that judge the vocoder while it is polished; thrown away afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from labkit.model.features import magnitude
from labkit.training.loop import Metrics, Stateful

DISCRIMINATOR_SIZES = (512, 1024, 2048)


@dataclass(frozen=True)
class AdversaryPrice:
    """What the vocoder pays for being found out, beside its spectral losses."""

    adversarial: float = 0.15
    feature: float = 0.5
    judge_rate: float = 4e-4
    rows: int = 6  # the first ones of a batch are judged


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


class Adversary:
    """The discriminators with their own optimizer; judged and trained on a few rows of every batch."""

    def __init__(self, price: AdversaryPrice, seed: int) -> None:
        torch.manual_seed(seed)
        self.price = price
        self.judges = nn.ModuleList(SpectrogramDiscriminator(n) for n in DISCRIMINATOR_SIZES)
        self.optimizer = torch.optim.AdamW(self.judges.parameters(), lr=price.judge_rate, betas=(0.8, 0.95))

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
        loss = self.price.adversarial * fooled + self.price.feature * matched
        return loss, {"judges": own.item(), "matched": matched.item()}
