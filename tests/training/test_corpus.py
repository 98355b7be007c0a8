"""The corpus plan keeps held-out strings out, and clips survive their checks and the disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.training import corpus
from labkit.training.corpus import (
    Clip,
    Item,
    defect,
    level,
    pad_to_steps,
    plan,
    read_shard,
    trim,
    words_of,
    write_shard,
)

TEST = ["zero seven eight", "eight five nine eight"]
FORBIDDEN = ["one two", "three, one four."]


def tone(seconds: float, amplitude: float = 0.3) -> np.ndarray:
    t = np.arange(int(seconds * corpus.SAMPLE_RATE)) / corpus.SAMPLE_RATE
    return (amplitude * np.sin(2 * np.pi * 200 * t)).astype(np.float32)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), per_voice=st.integers(11, 60))
def test_training_never_speaks_a_held_out_string_however_punctuated(seed: int, per_voice: int) -> None:
    items = plan(["a", "b"], per_voice, TEST, FORBIDDEN, valid=6, seed=seed)
    trained = {tuple(i.words) for i in items if i.split == "train"}
    others = {tuple(words_of(text)) for text in (*TEST, *FORBIDDEN)}
    others |= {tuple(i.words) for i in items if i.split == "valid"}
    assert not trained & others
    assert [i.text for i in items if i.split == "test"] == TEST


def test_a_longer_plan_begins_with_the_shorter_one() -> None:
    assert plan("ab", 40, TEST, [], 4, 9)[: 2 * 20 + 6] == plan("ab", 20, TEST, [], 4, 9)


def test_every_voice_is_taught_every_single_digit() -> None:
    items = plan("abc", 12, [], [], 0, 1)
    for voice in "abc":
        alone = {i.words[0] for i in items if i.voice == voice and len(i.words) == 1}
        assert alone == set(corpus.DIGITS)


def test_trim_leaves_the_asked_silence_and_no_more() -> None:
    silence = np.zeros(corpus.SAMPLE_RATE, np.float32)
    cut = trim(np.concatenate([silence, tone(0.5), silence]), lead_s=0.04, tail_s=0.08)
    assert len(cut) / corpus.SAMPLE_RATE == pytest.approx(0.62, abs=0.02)
    assert len(trim(silence)) == 0


def test_level_brings_loud_and_quiet_speech_together() -> None:
    quiet, loud = level(tone(0.3, 0.01)), level(tone(0.3, 0.9))
    assert np.sqrt((quiet**2).mean()) == pytest.approx(np.sqrt((loud**2).mean()), rel=1e-3)
    assert np.abs(level(np.r_[tone(0.3, 0.01), np.float32(1.0)])).max() <= 0.97 + 1e-6


@pytest.mark.parametrize(
    ("audio", "words", "expected"),
    [
        (np.zeros(0, np.float32), 1, "silent"),
        (np.array([np.nan] * 24_000, np.float32), 2, "not finite"),
        (tone(0.2), 4, "lasts 0.20 s for 4 words"),
        (tone(5.0), 1, "lasts 5.00 s for 1 words"),
        (np.ones(24_000, np.float32), 3, "clipped"),
        (tone(1.0), 3, None),
    ],
)
def test_unfit_clips_are_named(audio: np.ndarray, words: int, expected: str | None) -> None:
    assert defect(audio, words) == expected


@given(st.integers(1, 40_000))
def test_padding_gives_an_even_number_of_mel_frames(samples: int) -> None:
    padded = pad_to_steps(np.ones(samples, np.float32))
    assert len(padded) >= min(samples, 768) and (1 + len(padded) // 256) % 2 == 0
    assert len(padded) - samples < 1024


def test_a_shard_comes_back_as_it_was_written(tmp_path) -> None:
    clips = [Clip(Item(i, "a", "train", "one, two.", 1.0), tone(0.2 + i / 10)) for i in range(3)]
    write_shard(tmp_path / "shard-0000.npz", clips, [{"index": 3, "reason": "silent"}])
    found, dropped = read_shard(tmp_path / "shard-0000.npz")
    assert [c.item for c in found] == [c.item for c in clips]
    assert dropped == [{"index": 3, "reason": "silent"}]
    for a, b in zip(found, clips, strict=True):
        np.testing.assert_allclose(a.audio, b.audio, atol=1 / 32767)
