"""Forced-text NLL: the right text surprises least, lost speech surprises more, texts are written its way."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality import Clip, judge
from labkit.quality.base import Missing
from labkit.quality.forced_nll import WORST_NATS, ForcedNllScorer
from labkit.quality.words import as_written

TEXT = "nine two six five zero eight"
needs_whisper = pytest.mark.skipif(
    isinstance(ForcedNllScorer().availability(), Missing), reason="the quality extra is not installed"
)


@needs_whisper
def test_damage_and_wrong_texts_surprise(speech: np.ndarray) -> None:
    middle = speech.size // 2
    lost = np.concatenate([speech[: middle - 6000], speech[middle + 6000 :]])
    clips = [
        Clip("right", 0, speech, TEXT),
        Clip("tagged", 0, speech, "[uv_break]nine two six five zero eight."),
        Clip("lost", 0, lost, TEXT),
        Clip("wrong", 0, speech, "the garden is closed on sundays"),
        Clip("mute", 0, speech, "[uv_break]"),
    ]
    right, tagged, *worse, mute = judge(clips, ["forced_nll"])
    assert right["value"] == tagged["value"] > 0
    assert all(right["value"] + 0.3 < row["value"] <= WORST_NATS for row in worse)
    assert mute["value"] is None and "no words" in mute["reason"]
    assert "d01c3014" in right["scorer_version"]


@needs_whisper
def test_mandarin_text_has_a_loss(speech: np.ndarray) -> None:
    scorer = ForcedNllScorer()
    scorer.load()
    value = scorer.score(Clip("zh", 0, speech, "你好", language="zh"))["forced_nll"].value
    assert value is not None and 0 < value <= WORST_NATS


@pytest.mark.parametrize(
    ("text", "language", "written"),
    [
        ("turn left[uv_break]  now", "en", " Turn left now."),
        ("Stop!", "en", " Stop!"),
        ("[speed_5]你好", "zh", "你好。"),
    ],
)
def test_texts_are_written_as_the_recognizer_writes(text: str, language: str, written: str) -> None:
    assert as_written(text, language) == written
