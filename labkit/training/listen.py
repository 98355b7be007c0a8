"""Ears for the nano voice: two recognizers, two guesses of quality and one of who speaks, for any list of clips.

Whisper-base writes freely and knows nothing of the domain; the closed recognizer must choose words of it. They fail in
different ways, so both are reported beside what they make of the source speech. Words are compared in one spelling,
numbers figure by figure. Knows nothing of the voice.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Self

import numpy as np

from labkit.errors import UnavailableError
from labkit.quality.audio import to_16k
from labkit.quality.base import Missing
from labkit.quality.distillmos import DistillMos, DistillMosScorer
from labkit.quality.dnsmos import DnsmosModel, DnsmosScorer
from labkit.quality.files import package_folder
from labkit.quality.speaker_similarity import CamppScorer, embed_speaker
from labkit.quality.whisper import Whisper, assemble
from labkit.quality.whisper import availability as whisper_availability
from labkit.training.clip_check import comparable
from labkit.training.closed_ear import ClosedEar
from labkit.training.corpus import edit_distance, words_of

Voiceprints = Mapping[str, np.ndarray]
"""Speaker -> CAM++ vector [192] of unit length."""


@dataclass(frozen=True)
class Heard:
    """What was heard of one clip. Errors are counts of words; `words` is how many were to be said.

    `speaker` is the one whose voiceprint is nearest. None: not judged (no sound, a package missing, nobody to tell
    apart).
    """

    text: str
    words: int
    whisper: str
    whisper_errors: int
    closed: str
    closed_errors: int
    dnsmos_p808: float | None
    dnsmos_ovrl: float | None
    distill_mos: float | None
    speaker: str | None
    seconds: float


@dataclass(frozen=True)
class Finding:
    """One clip of one arm. `ended` and `duration_ratio` are None where they mean nothing."""

    arm: str
    speaker: str
    heard: Heard
    ended: bool | None
    duration_ratio: float | None


def voiceprints(clips: Mapping[str, Iterable[np.ndarray]]) -> dict[str, np.ndarray]:
    """The mean direction of each speaker's clips; empty when the speaker model is not installed."""
    if isinstance(CamppScorer().availability(), Missing):
        return {}
    means = {name: np.mean([embed_speaker(audio) for audio in own], axis=0) for name, own in clips.items()}
    return {name: mean / np.linalg.norm(mean) for name, mean in means.items()}


class Listener:
    """Loaded recognizers and scorers; raises `UnavailableError` when a package is missing."""

    @staticmethod
    def check() -> None:
        """Raise `UnavailableError` for the first package that is missing."""
        answers = [whisper_availability(), DnsmosScorer().availability()]
        if package_folder("pocketsphinx") is None:
            remedy = "Install the extra with `pip install 'labkit[train]'`."
            answers.append(
                Missing("The closed recognizer needs pocketsphinx, which is not installed.", remedy)
            )
        for answer in answers:
            if isinstance(answer, Missing):
                raise UnavailableError(answer.reason, answer.remedy)

    def __init__(self, speakers: Voiceprints | None = None, *, judge_quality: bool = True) -> None:
        self.check()
        mos = package_folder("speechmos")
        assert mos is not None  # checked above

        self._speakers, self._judge_quality = dict(speakers or {}), judge_quality
        self._whisper = Whisper(assemble())
        self._closed = ClosedEar()
        self._dnsmos = DnsmosModel(mos)
        self._distill: DistillMos | None = None
        if judge_quality and not isinstance(DistillMosScorer().availability(), Missing):
            self._distill = DistillMos()

    def __call__(self, audio: np.ndarray, text: str) -> Heard:
        """Judge one clip [N] at 24 kHz. A clip without sound has all its words wrong and nothing else."""
        said = comparable(" ".join(words_of(text)))
        seconds = len(audio) / 24_000
        if len(audio) < 2_400 or float(np.abs(audio).max()) < 1e-3:
            return Heard(text, len(said), "", len(said), "", len(said), None, None, None, None, seconds)
        narrow = to_16k(audio)
        heard = comparable(self._whisper.transcribe(narrow))
        chosen = comparable(self._closed(audio, text))
        scores = self._dnsmos(narrow) if self._judge_quality else None
        return Heard(
            text=text,
            words=len(said),
            whisper=" ".join(heard),
            whisper_errors=edit_distance(said, heard),
            closed=" ".join(chosen),
            closed_errors=edit_distance(said, chosen),
            dnsmos_p808=scores and scores.p808,
            dnsmos_ovrl=scores and scores.overall,
            distill_mos=self._distill(narrow) if self._distill else None,
            speaker=self._who(audio) if self._judge_quality else None,
            seconds=seconds,
        )

    def _who(self, audio: np.ndarray) -> str | None:
        if not self._speakers:
            return None
        print_ = embed_speaker(audio)
        return max(self._speakers, key=lambda name: float(self._speakers[name] @ print_))


_listener: Listener | None = None


def _load(speakers: Voiceprints, judge_quality: bool) -> None:
    global _listener
    _listener = Listener(speakers, judge_quality=judge_quality)


def _hear(pair: tuple[np.ndarray, str]) -> Heard:
    assert _listener is not None  # the pool's initializer made it
    return _listener(*pair)


class Listeners:
    """A process per core, each with its own recognizers; called with (audio, text) pairs, it answers in order."""

    def __init__(
        self, speakers: Voiceprints | None = None, *, judge_quality: bool = True, workers: int | None = None
    ) -> None:
        Listener.check()
        self._pool = ProcessPoolExecutor(
            workers or os.cpu_count(),
            get_context("spawn"),
            initializer=_load,
            initargs=(dict(speakers or {}), judge_quality),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def __call__(self, pairs: Iterable[tuple[np.ndarray, str]]) -> list[Heard]:
        return list(self._pool.map(_hear, pairs))
