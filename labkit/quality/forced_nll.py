"""How surprised Whisper-base is by the text it should have heard: negative log-likelihood of the text, forced.

It knows how the text must be written so that the recognizer is not surprised by the writing: as it writes itself, with
a capital and a full stop. Where word errors count what was heard wrongly, this also moves when a word was barely heard:
lost words, a cut end and a repeated piece show in it first.
"""

from __future__ import annotations

import numpy as np

from labkit.quality import whisper
from labkit.quality.audio import to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.words import as_written, plain_words

WORST_NATS = 5.0  # a token's largest loss: beyond e^-5 it was not heard, and how much less says nothing


class ForcedNllScorer:
    """Forced-text NLL behind the metric contract."""

    name = "forced_nll"
    metrics = (
        Metric(
            "forced_nll", "nats", "lower", "Whisper-base's mean loss on the tokens of the text it should hear"
        ),
    )
    needs: frozenset[Need] = frozenset({"text"})
    languages: tuple[str, ...] | None = ("en", "zh")
    rate = whisper.RATE
    packages = whisper.PACKAGES
    weights = whisper.WEIGHTS
    max_s = float(whisper.WINDOW_S)
    accepts_damaged = False
    cost_cpu_s = 0.16

    def availability(self) -> Ready | Missing:
        answer = whisper.availability("Forced-text NLL", ())
        if isinstance(answer, Missing):
            return answer
        return Ready(f"{answer.version}, losses up to {WORST_NATS:g} nats")

    def load(self) -> None:
        self._model = whisper.Whisper(whisper.assemble())

    def score(self, clip: Clip) -> dict[str, Score]:
        if not plain_words(clip.text):
            return {"forced_nll": Score(None, f"no words in {clip.text!r}")}
        text = as_written(clip.text, clip.language)
        losses = self._model.losses(to_16k(clip.audio), text, clip.language)
        return {"forced_nll": Score(float(np.minimum(losses, WORST_NATS).mean()))}
