"""Word and character error rate: did the voice say the words? Packaged Whisper-base listens, jiwer counts.

It knows English words and Mandarin syllables. Numbers are compared figure by figure, digit strings are read in their
closed domain, and control tokens that were read out are counted; see `words`.
"""

from __future__ import annotations

import re

from labkit.quality import whisper
from labkit.quality.audio import to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_version
from labkit.quality.words import (
    comparable_words,
    heard_digits,
    is_digit_domain,
    mandarin_syllables,
    plain_words,
    spoken_tags,
)

COUNTERS = ("jiwer", "pypinyin")
METRICS = (
    Metric("wer", "ratio", "lower", "word (Mandarin: syllable) errors over reference words, by Whisper-base"),
    Metric("cer", "ratio", "lower", "character (Mandarin: pinyin letter) errors over reference characters"),
    Metric("spoken_tags", "count", "lower", "control tokens that were read out, as Whisper-base hears them"),
)


def error_rates(text: str, heard: str, language: str = "en") -> tuple[float, float]:
    """Word and character error rate of what was heard, both after normalization; each can exceed 1.

    Mandarin is compared as it sounds: syllables with their tones for words, letters without tones for characters.
    Raises ValueError when the text has no words.
    """
    import jiwer

    words = mandarin_syllables if language == "zh" else comparable_words
    reference, hypothesis = words(text), words(heard)
    if not reference:
        raise ValueError(f"no words in {text!r}")
    if is_digit_domain(reference):
        hypothesis = heard_digits(hypothesis)
    said, got = " ".join(reference), " ".join(hypothesis)
    word_rate = float(jiwer.wer(said, got))
    if language == "zh":
        said, got = (re.sub(r"[0-9]", "", line) for line in (said, got))
    return word_rate, float(jiwer.cer(said, got))


class WerScorer:
    """`error_rates` on what Whisper-base hears; the remark says what that was."""

    name = "wer"
    metrics = METRICS
    needs: frozenset[Need] = frozenset({"text"})
    languages: tuple[str, ...] | None = ("en", "zh")
    rate = whisper.RATE
    packages = (*whisper.PACKAGES, *COUNTERS)
    weights = whisper.WEIGHTS
    max_s = float(whisper.WINDOW_S)
    accepts_damaged = False
    cost_cpu_s = 0.2

    def availability(self) -> Ready | Missing:
        answer = whisper.availability("WER", COUNTERS)
        if isinstance(answer, Missing):
            return answer
        counted = f"by figures, jiwer {package_version('jiwer')}, pypinyin {package_version('pypinyin')}"
        return Ready(f"{answer.version}, {counted}")

    def load(self) -> None:
        self._model = whisper.Whisper(whisper.assemble())

    def score(self, clip: Clip) -> dict[str, Score]:
        if not plain_words(clip.text):
            return {metric.name: Score(None, f"no words in {clip.text!r}") for metric in METRICS}
        heard = self._model.transcribe(to_16k(clip.audio), clip.language)
        remark = f'heard "{heard}"'
        word_rate, character_rate = error_rates(clip.text, heard, clip.language)
        tags = spoken_tags(plain_words(clip.text), plain_words(heard))
        values = {"wer": word_rate, "cer": character_rate, "spoken_tags": float(tags)}
        return {name: Score(value, remark) for name, value in values.items()}
