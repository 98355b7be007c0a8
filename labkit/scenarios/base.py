"""What every scenario shares: the driver protocol, one timed take, and the order in which texts are spoken.

It knows how to time a call and what a sample holds. It knows no engine: a driver turns a text into a `Take`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.measure.clocks import read_clocks
from labkit.measure.samples import Phase, RawSample, SampleRecorder
from labkit.measure.yardstick import yardstick_s
from labkit.spec import RunSpec

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
SAMPLE_RATE = 24_000  # Hz, what every ChatTTS vocoder gives


class Text(Protocol):
    """One text of a corpus."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...


class Reference(Protocol):
    """What the reference recipe said for one text: codes [T, 4]."""

    @property
    def codes(self) -> IntArray: ...


@dataclass(frozen=True)
class Take:
    """One utterance as a driver hands it over.

    audio: [N] at 24 kHz. values: stage seconds and counts that the driver knows, nulls explained in `reasons`;
    a driver of another process puts its own `cpu_s` there. series: raw seconds of each step.
    """

    audio: FloatArray
    codes: IntArray | None
    ended: bool | None
    flags: tuple[str, ...] = ()
    values: Mapping[str, float | int | None] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, list[float]] = field(default_factory=dict)


class FirstAudio(NamedTuple):
    """Seconds until the first chunk of audio was in hand, or None and why."""

    seconds: float | None
    reason: str = ""


class Driver(Protocol):
    """Speaks one text at a time; `codes` [T, 4] are said instead of drawn when given."""

    def speak(self, text: str, codes: IntArray | None) -> Take: ...

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio: ...


Keep = Callable[[str, Take], None]


@dataclass(frozen=True)
class Drive:
    """A driver, its work and where the samples go."""

    driver: Driver
    spec: RunSpec
    texts: tuple[Text, ...]
    references: Mapping[str, Reference]
    recorder: SampleRecorder
    keep: Keep | None = None

    def round_robin(self, *, replay: bool) -> None:
        """Warm up, then speak all texts in turn once for every repetition.

        Repetitions of one text lie as far apart as the run allows, so that a disturbance of some seconds
        does not fall on all of them. A warm-up speaks one text, the longest first: buffers grow to their
        size there.
        """
        codes = {text.id: self._codes(text) if replay else None for text in self.texts}
        longest_first = sorted(self.texts, key=lambda text: -len(text.text))
        for number in range(self.spec.warmups):
            text = longest_first[number % len(longest_first)]
            self._sample("warmup", number, text, codes[text.id])
        for repetition in range(self.spec.repeats):
            for text in self.texts:
                take = self._sample("measured", repetition, text, codes[text.id])
                if repetition == 0 and self.keep is not None:
                    self.keep(text.id, take)

    def _codes(self, text: Text) -> IntArray:
        if text.id not in self.references:
            raise SpecError(f"text {text.id!r} has no reference codes to replay; make the references again.")
        return self.references[text.id].codes

    def _sample(self, phase: Phase, repetition: int, text: Text, codes: IntArray | None) -> Take:
        take, values = timed(self.driver, text.text, codes)
        first = self.driver.first_audio(text.text, codes)
        reasons = dict(take.reasons)
        if first.seconds is None:
            reasons["ttft_s"] = first.reason
        if values["rtf"] is None:
            reasons["rtf"] = reasons["rtfx"] = "there is no audio to divide by"
        self._record(phase, repetition, text.id, take, values | {"ttft_s": first.seconds}, reasons)
        return take

    def _record(
        self,
        phase: Phase,
        repetition: int,
        item: str,
        take: Take,
        values: dict[str, float | int | None],
        reasons: dict[str, str],
    ) -> RawSample:
        return self.recorder.add(
            phase,
            repetition,
            item,
            values,
            reasons=reasons,
            ended=take.ended,
            flags=take.flags,
            series=take.series,
        )


def timed(driver: Driver, text: str, codes: IntArray | None) -> tuple[Take, dict[str, float | int | None]]:
    """Speak once between two readings of the clocks; latency counts from text in hand to audio in hand.

    A driver of another process times itself there: its own `latency_s` and `cpu_s` take the place of these. The
    yardstick is laid on right before and right after, outside of both readings.
    """
    first = yardstick_s()
    before = read_clocks()
    take = driver.speak(text, codes)
    spent = read_clocks() - before
    yardstick = (first + yardstick_s()) / 2
    audio_s = len(take.audio) / SAMPLE_RATE
    latency_s = take.values.get("latency_s") or spent.wall_s
    values: dict[str, float | int | None] = {
        "latency_s": latency_s,
        "cpu_s": spent.cpu_s,
        "audio_s": audio_s,
        "rtf": latency_s / audio_s if audio_s else None,
        "rtfx": audio_s / latency_s if audio_s else None,
    }
    values |= {**take.values, "yardstick_s": yardstick}
    if yardstick and (cpu_s := values["cpu_s"]) is not None:
        values["cpu_yardsticks"] = cpu_s / yardstick
    return take, values
