"""Word and character error rate: did the voice say the words? Packaged Whisper-base listens, jiwer counts.

It knows English. Digit strings (the nano voice's domain) are read in their closed domain; see `words`.
"""

from __future__ import annotations

from labkit.quality import whisper
from labkit.quality.audio import to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.words import heard_digits, is_digit_domain, plain_words

METRICS = (
    Metric("wer", "ratio", "lower", "word errors over reference words, as Whisper-base hears them"),
    Metric("cer", "ratio", "lower", "character errors over reference characters, as Whisper-base hears them"),
)


def error_rates(text: str, heard: str) -> tuple[float, float]:
    """Word and character error rate of what was heard, both after normalization; each can exceed 1.

    Raises ValueError when the text has no words.
    """
    import jiwer

    reference, hypothesis = plain_words(text), plain_words(heard)
    if not reference:
        raise ValueError(f"no words in {text!r}")
    if is_digit_domain(reference):
        hypothesis = heard_digits(hypothesis)
    said, got = " ".join(reference), " ".join(hypothesis)
    return float(jiwer.wer(said, got)), float(jiwer.cer(said, got))


class WerScorer:
    """`error_rates` on what Whisper-base hears; the remark says what that was."""

    name = "wer"
    metrics = METRICS
    needs: frozenset[Need] = frozenset({"text"})
    languages: tuple[str, ...] | None = ("en",)
    rate = whisper.RATE
    packages = (*whisper.PACKAGES, "jiwer")
    weights = whisper.WEIGHTS
    max_s = float(whisper.WINDOW_S)
    accepts_damaged = False
    cost_cpu_s = 0.2

    def availability(self) -> Ready | Missing:
        return whisper.availability()

    def load(self) -> None:
        self._model = whisper.Whisper(whisper.assemble())

    def score(self, clip: Clip) -> dict[str, Score]:
        if not plain_words(clip.text):
            return {metric.name: Score(None, f"no words in {clip.text!r}") for metric in METRICS}
        heard = self._model.transcribe(to_16k(clip.audio), clip.language)
        remark = f'heard "{heard}"'
        return {
            metric.name: Score(rate, remark)
            for metric, rate in zip(METRICS, error_rates(clip.text, heard), strict=True)
        }
