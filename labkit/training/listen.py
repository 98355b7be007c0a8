"""Ears for the nano voice: two recognizers of digit strings and DNSMOS, for any list of clips.

Whisper-base writes freely and knows nothing of digits; pocketsphinx must choose digits by a grammar: one of the ten
for a single digit, any number of them for a string. They fail in
different ways, so both are reported beside what they make of the source speech. Knows nothing of the voice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Self

import numpy as np

from labkit.errors import UnavailableError
from labkit.quality.audio import to_16k
from labkit.quality.base import Missing
from labkit.quality.dnsmos import DnsmosModel, DnsmosScorer
from labkit.quality.files import package_folder
from labkit.quality.whisper import Whisper, assemble
from labkit.quality.whisper import availability as whisper_availability
from labkit.quality.words import heard_digits, plain_words
from labkit.training.align import to_recognizer
from labkit.training.corpus import DIGITS, words_of

# Chosen on the teacher's speech, where the default (0.65) makes the recognizer hear extra words at clip ends.
WORD_INSERTION_PENALTY = 1e-4


def edit_distance(said: Sequence[str], heard: Sequence[str]) -> int:
    """Word substitutions, insertions and deletions (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said):
        above = row
        row = [i + 1]
        for j, other in enumerate(heard):
            row.append(min(above[j] + (word != other), above[j + 1] + 1, row[j] + 1))
    return row[-1]


@dataclass(frozen=True)
class Heard:
    """What was heard of one clip. Errors are counts of words; `words` is how many were to be said."""

    text: str
    words: int
    whisper: str
    whisper_errors: int
    grammar: str
    grammar_errors: int
    dnsmos_p808: float | None
    dnsmos_ovrl: float | None
    seconds: float


class Listener:
    """Loaded recognizers; raises `UnavailableError` when a package is missing."""

    @staticmethod
    def check() -> None:
        """Raise `UnavailableError` for the first package that is missing."""
        answers = [whisper_availability(), DnsmosScorer().availability()]
        if package_folder("pocketsphinx") is None:
            remedy = "Install the extra with `pip install 'labkit[train]'`."
            answers.append(Missing("The digit grammar needs pocketsphinx, which is not installed.", remedy))
        for answer in answers:
            if isinstance(answer, Missing):
                raise UnavailableError(answer.reason, answer.remedy)

    def __init__(self) -> None:
        from pocketsphinx import Decoder

        self.check()
        mos = package_folder("speechmos")
        assert mos is not None  # checked above

        self._whisper = Whisper(assemble())
        self._dnsmos = DnsmosModel(mos)
        self._grammar = Decoder(
            samprate=16_000, loglevel="FATAL", bestpath=False, cmn="batch", wip=WORD_INSERTION_PENALTY
        )
        for name, repeat in (("digits", "+"), ("digit", "")):
            rule = f"#JSGF V1.0; grammar d; public <s> = ( {' | '.join(DIGITS)} ){repeat} ;"
            self._grammar.add_jsgf_string(name, rule)

    def _by_grammar(self, audio: np.ndarray, words: int) -> list[str]:
        self._grammar.activate_search("digit" if words == 1 else "digits")
        self._grammar.start_utt()
        self._grammar.process_raw(to_recognizer(audio), full_utt=True)
        self._grammar.end_utt()
        hypothesis = self._grammar.hyp()
        return hypothesis.hypstr.split() if hypothesis else []

    def __call__(self, audio: np.ndarray, text: str) -> Heard:
        """Judge one clip [N] at 24 kHz. A clip without sound has all its words wrong and no DNSMOS."""
        said = words_of(text)
        if len(audio) < 2_400 or float(np.abs(audio).max()) < 1e-3:
            return Heard(text, len(said), "", len(said), "", len(said), None, None, len(audio) / 24_000)
        narrow = to_16k(audio)
        heard = heard_digits(plain_words(self._whisper.transcribe(narrow)))
        chosen = self._by_grammar(audio, len(said))
        scores = self._dnsmos(narrow)
        return Heard(
            text=text,
            words=len(said),
            whisper=" ".join(heard),
            whisper_errors=edit_distance(said, heard),
            grammar=" ".join(chosen),
            grammar_errors=edit_distance(said, chosen),
            dnsmos_p808=scores.p808,
            dnsmos_ovrl=scores.overall,
            seconds=len(audio) / 24_000,
        )


_listener: Listener | None = None


def _load() -> None:
    global _listener
    _listener = Listener()


def _hear(pair: tuple[np.ndarray, str]) -> Heard:
    assert _listener is not None  # the pool's initializer made it
    return _listener(*pair)


class Listeners:
    """A process per core, each with its own recognizers; called with (audio, text) pairs, it answers in order."""

    def __init__(self, workers: int | None = None) -> None:
        Listener.check()
        self._pool = ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn"), initializer=_load)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def __call__(self, pairs: Iterable[tuple[np.ndarray, str]]) -> list[Heard]:
        return list(self._pool.map(_hear, pairs))
