"""One stage on recorded generations, and how far its answers are from those it gave in float32.

Missing is NaN: a decoder decides no codes, so it has no divergence. Shapes: T decode steps, S prompt tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labkit.model.features import log_mel
from labkit.quality.log_mel import DB_PER_NEPER, FLOOR

if TYPE_CHECKING:
    from labkit.calibration import CalibrationSet
    from labkit.model.gpt import Gpt
    from labkit.spec import StageName

FIGURES = ("kl", "top1", "nll_delta", "hidden_error", "mel_db")
"""kl: divergence of the code distributions from float32's, nats, mean over steps and codebooks; top1: share of equal
most likely codes; nll_delta: rise of the negative log-likelihood of the recorded codes, nats; hidden_error: relative
error of the last hidden state; mel_db: mean distance of the log-mel that is heard in the end, dB."""
Figures = dict[str, float]
Row = tuple[int, Figures]
"""The length of a sentence (T; frames of a mel), by which it is weighted, and its figures."""


class Comparison(Protocol):
    """A stage with its recorded inputs and float32 answers."""

    @property
    def network(self) -> nn.Module: ...

    def sentences(self) -> list[Row]:
        """The network, as it is now, against its float32 answers."""


def mean_figures(rows: Sequence[Row]) -> Figures:
    """Over sentences, weighted by their length."""
    weights = [steps for steps, _ in rows]
    return {name: float(np.average([row[name] for _, row in rows], weights=weights)) for name in rows[0][1]}


def code_figures(
    codes: Tensor, logits: Tensor, hidden: Tensor, found_logits: Tensor, found_hidden: Tensor
) -> Figures:
    """What the GPT's figures are: codes [T, 4] that were recorded, logits [T + 1, 4, 626] and hidden [T + 1, D] of
    float32 and as they were found. Lacks `mel_db`.
    """
    before, after = (F.log_softmax(each, -1) for each in (logits, found_logits))
    said = [-each[: len(codes)].gather(-1, codes[..., None]).mean() for each in (before, after)]
    figures = {
        "kl": (before.exp() * (before - after)).sum(-1).mean(),
        "top1": (before.argmax(-1) == after.argmax(-1)).float().mean(),
        "nll_delta": said[1] - said[0],
        "hidden_error": ((found_hidden - hidden).norm(dim=-1) / hidden.norm(dim=-1)).mean(),
    }
    return {name: float(value) for name, value in figures.items()}


def mel_distance(found: Tensor, wanted: Tensor) -> float:
    """Mean absolute difference of two log-mels (natural logarithm) in dB; below `FLOOR` all is silence."""
    found, wanted = (each.clamp(min=math.log(FLOOR)) for each in (found, wanted))
    return float((found - wanted).abs().mean() * DB_PER_NEPER)


class GptComparison:
    """Teacher-forced: every position sees the recorded codes. The end mark's step counts, too."""

    def __init__(self, recorded: CalibrationSet, network: Gpt, decoder: nn.Module | None) -> None:
        """`decoder` reads hidden states; None on the codes path, where hidden states are not heard."""
        self.network, self.decoder = network, decoder
        feeds = zip(recorded.feeds("gpt"), recorded.recordings(), strict=True)
        self.inputs = [
            (torch.from_numpy(feed["embeddings"]), len(each.ids), torch.from_numpy(each.codes))
            for feed, each in feeds
        ]
        self.wanted = [self._answers(*each) for each in self.inputs]

    def sentences(self) -> list[Row]:
        rows = []
        for given, (hidden, logits, mel) in zip(self.inputs, self.wanted, strict=True):
            found_hidden, found_logits, found_mel = self._answers(*given)
            figures = code_figures(given[2], logits, hidden, found_logits, found_hidden)
            figures["mel_db"] = np.nan if mel is None or found_mel is None else mel_distance(found_mel, mel)
            rows.append((len(given[2]), figures))
        return rows

    def _answers(
        self, embeddings: Tensor, prompt: int, codes: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """hidden [T + 1, D], logits [T + 1, 4, 626], mel [1, 100, 2T]."""
        with torch.inference_mode():
            hidden = self.network(embeddings)[0, prompt - 1 :]
            mel = self.decoder(hidden[None, :-1]) if self.decoder else None
            return hidden, self.network.code_logits(hidden), mel


class NetworkComparison:
    """Decoder (its mel against float32's) or vocoder (the log-mel of its audio)."""

    def __init__(self, recorded: CalibrationSet, network: nn.Module, stage: StageName) -> None:
        self.network, self.heard = network, stage == "vocoder"
        self.inputs = [torch.from_numpy(next(iter(feed.values()))) for feed in recorded.feeds(stage)]
        self.wanted = [self._answer(given) for given in self.inputs]

    def sentences(self) -> list[Row]:
        pairs = zip(self.inputs, self.wanted, strict=True)
        missing = dict.fromkeys(FIGURES, np.nan)
        return [
            (wanted.shape[-1], {**missing, "mel_db": mel_distance(self._answer(given), wanted)})
            for given, wanted in pairs
        ]

    def _answer(self, given: Tensor) -> Tensor:
        """The log-mel [1, 100, F] that the stage makes, or that its audio has."""
        with torch.inference_mode():
            answer = self.network(given)
            return log_mel(answer) if self.heard else answer
