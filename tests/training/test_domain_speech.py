"""Pauses are as long as defined, and words are respelled where the teacher would say another."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.training.corpus import SAMPLE_RATE, words_of
from labkit.training.domain_speech import PAUSE_S, as_written


def hum(text: str, voice: str, tempo: float) -> np.ndarray:
    """A quarter of a second of tone a word, in silence."""
    t = np.arange(int(0.25 * len(words_of(text)) / tempo * SAMPLE_RATE)) / SAMPLE_RATE
    silence = np.zeros(SAMPLE_RATE // 4)
    return np.concatenate([silence, 0.3 * np.sin(2 * np.pi * 220 * t), silence]).astype(np.float32)


def quiet_stretches(audio: np.ndarray) -> list[float]:
    """Lengths in seconds of the inner stretches of 10 ms blocks without sound."""
    blocks = np.abs(audio[: len(audio) // 240 * 240]).reshape(-1, 240).max(1) > 0.01
    edges = np.flatnonzero(np.diff(np.r_[0, blocks.astype(int), 0]))
    return [(b - a) / 100 for a, b in zip(edges[1:-1:2], edges[2::2], strict=True)]


def test_a_break_is_a_pause_of_the_defined_length() -> None:
    audio = as_written(hum)("turn left [uv_break] now and [uv_break] go.", "a", 1.0)
    assert quiet_stretches(audio) == [pytest.approx(PAUSE_S, abs=0.03)] * 2


def test_each_part_but_the_last_is_spoken_as_if_a_comma_followed() -> None:
    heard: list[str] = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        heard.append(text)
        return hum(text, voice, tempo)

    as_written(speak)("stop [uv_break] turn left.", "a", 1.0)
    as_written(speak)("stop, turn left.", "a", 1.0)
    assert heard == ["stop,", "turn left.", "stop, turn left."]


def test_the_teacher_reads_a_respelling_where_it_would_say_another_word() -> None:
    heard: list[str] = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        heard.append(text)
        return hum(text, voice, tempo)

    as_written(speak)("close the door, increase the speed.", "a", 1.0)
    assert heard == ["cloze the door, in crease the speed."]
