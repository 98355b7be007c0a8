"""What counts as the same words, what is forgiven, and that hearing resumes and its losses are counted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labkit.training.clip_check import answer, answers_path, check_corpus, comparable, found_right, tally
from labkit.training.corpus import Clip, Item, write_shard

SECOND = np.full(24_000, 0.1, np.float32)


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("okay set the timer to forty two minutes", "OK, set the timer to 42 minutes."),
        ("fifty four percent", "54%"),
        ("send twenty grams and two meters", "Send 20g and 2m."),
        ("send nineteen dollars", "Send $19."),
        ("turn ninety degrees right", "Turn 90° write."),
        ("call zero five nine", "call 059"),
        ("set the alarm to eight watts", "Set the alarm to 8W"),
    ],
)
def test_spellings_of_the_same_words_compare_equal(text: str, heard: str) -> None:
    assert comparable(text) == comparable(heard)


@pytest.mark.parametrize(
    ("a", "b"), [("nineteen", "ninety"), ("thirteen watts", "30 watts"), ("left", "right")]
)
def test_other_words_stay_other(a: str, b: str) -> None:
    assert comparable(a) != comparable(b)


@pytest.mark.parametrize(
    ("text", "heard", "errors", "right"),
    [
        ("turn left", "Turn left.", 0, True),
        ("turn left", "turn lift", 1, False),
        ("stop the robot, now", "Stop the robots now", 1, True),
        ("stop the robot [uv_break] now", "Stop a robots now", 2, False),
        ("go", "", 1, False),
    ],
)
def test_one_wrong_word_in_four_is_forgiven(text: str, heard: str, errors: int, right: bool) -> None:
    found = answer(3, text, SECOND, [lambda audio, _: heard])
    assert (found.index, found.errors, found.is_right) == (3, errors, right)


def test_a_second_ear_is_asked_where_the_first_is_wrong() -> None:
    asked: list[str] = []

    def second(audio: np.ndarray, text: str) -> str:
        asked.append(text)
        return "go"

    ears = [lambda audio, _: "Okay, go.", second]
    assert answer(0, "go.", SECOND, ears).heard == "go"
    assert answer(0, "okay go", SECOND, ears).heard == "Okay, go."
    assert answer(0, "stop", SECOND, ears).heard == "Okay, go." and asked == ["go.", "stop"]


def test_a_clip_too_short_for_the_recognizer_is_not_heard() -> None:
    def fail(audio: np.ndarray, text: str) -> str:
        raise AssertionError("must not be asked")

    assert not answer(0, "go", SECOND[:100], [fail]).is_right


def shard(folder, number: int, *texts: str, dropped: tuple[dict, ...] = ()) -> None:
    clips = [Clip(Item(number * 10 + i, "a", "train", t, 1.0), SECOND) for i, t in enumerate(texts)]
    write_shard(folder / f"shard-{number:04d}.npz", clips, dropped)


def test_hearing_resumes_at_the_first_shard_without_answers(tmp_path) -> None:
    shard(tmp_path, 0, "turn left", "stop")
    check_corpus(tmp_path, [lambda audio, _: "turn left"], say=lambda _: None)
    shard(tmp_path, 1, "stop")
    asked = []

    def ear(audio: np.ndarray, text: str) -> str:
        asked.append(audio)
        return "Stop!"

    check_corpus(tmp_path, [ear], say=lambda _: None)
    assert len(asked) == 1 and found_right(tmp_path) == {0, 10}
    assert json.loads(answers_path(tmp_path / "shard-0001.npz").read_text())[0]["heard"] == "Stop!"


def test_losses_are_counted_with_their_reasons(tmp_path) -> None:
    drops = ({"index": 5, "reason": "silent"}, {"index": 6, "reason": "lasts 9.10 s for 1 words"})
    shard(tmp_path, 0, "turn left", "stop", dropped=drops)
    check_corpus(tmp_path, [lambda audio, _: "turn left"], say=lambda _: None)
    found = tally(tmp_path)
    assert found.lost == {"silent": 1, "of odd duration": 1, "misheard": 1}
    assert (
        "2 clips heard, word error rate 66.7 %; dropped: 1 misheard, 1 of odd duration, 1 silent"
        in found.in_words()
    )
