"""Spelling: what a recognizer writes for the same words compares equal, other words do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.quality.wer import error_rates
from labkit.quality.words import (
    DIGITS,
    heard_digits,
    is_digit_domain,
    mandarin_syllables,
    plain_words,
    spoken_tags,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("729", ["seven", "two", "nine"]),
        ("7-2-9!", ["seven", "two", "nine"]),
        ("[speed_5]Seven, two[uv_break] nine.[laugh]", ["seven", "two", "nine"]),
        ("７２９", ["seven", "two", "nine"]),
        ("Don’t stop", ["don't", "stop"]),
        ("…?! —", []),
    ],
)
def test_plain_words(text: str, words: list[str]) -> None:
    assert plain_words(text) == words


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_numerals_and_words_of_digits_compare_equal(digits: list[int]) -> None:
    said = " ".join(DIGITS[d] for d in digits)
    for heard in ("".join(map(str, digits)), ", ".join(map(str, digits)), said.title() + "."):
        assert error_rates(said, heard) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("heard", "digits"),
    [
        ("won to for ate", "one two four eight"),
        ("forty two", "four two"),
        ("twenty", "two zero"),
        ("fourteen oh", "one four zero"),
    ],
)
def test_closed_domain_reading(heard: str, digits: str) -> None:
    assert " ".join(heard_digits(heard.split())) == digits


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("set the timer to forty two minutes", "Set the timer to 42 minutes."),
        ("twenty percent", "20%"),
        ("turn ninety degrees", "Turn 90°"),
        ("send fifteen dollars", "Send $15."),
        ("send sixty grams", "Send 60g"),
    ],
)
def test_numbers_and_signs_compare_as_words(said: str, heard: str) -> None:
    assert error_rates(said, heard)[0] == 0.0


def test_another_number_is_an_error() -> None:
    assert error_rates("turn forty two degrees", "turn 52 degrees")[0] == pytest.approx(1 / 4)


def test_homophones_count_as_errors_outside_the_digit_domain() -> None:
    assert not is_digit_domain(["go", "to"])
    assert error_rates("go to one", "go two one")[0] == pytest.approx(1 / 3)


def test_missing_extra_and_wrong_words_are_counted() -> None:
    assert error_rates("one two three four", "one two")[0] == 0.5
    assert error_rates("one", "one one one")[0] == 2.0
    assert error_rates("one two", "")[0] == 1.0


def test_a_text_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="no words"):
        error_rates("?!", "one")


def test_mandarin_is_compared_as_it_sounds() -> None:
    pytest.importorskip("pypinyin")
    assert mandarin_syllables("[uv_break]你好, 2!") == ["ni3", "hao3", "er4"]
    assert mandarin_syllables("OK，再見") == ["ok", "zai4", "jian4"]
    assert error_rates("他在公园里。", "她再公圓裡", "zh") == (0.0, 0.0)  # other characters, the same sounds
    word_rate, character_rate = error_rates("买书", "卖书", "zh")  # another tone
    assert (word_rate, character_rate) == (0.5, 0.0)
    assert error_rates("你好", "你", "zh")[0] == 0.5
    with pytest.raises(ValueError, match="no words"):
        error_rates("。", "你", "zh")


@pytest.mark.parametrize(
    ("said", "heard", "count"),
    [
        ("turn left", "Turn left.", 0),
        ("turn left", "Turn UV break left.", 1),
        ("turn left", "Laugh, turn left, break six", 2),
        ("reduce the speed", "reduce the speed", 0),
        ("reduce the speed", "reduce the speed. speed 5", 1),
        ("break the glass", "brake the glass", 0),
    ],
)
def test_tags_that_were_read_out_are_counted(said: str, heard: str, count: int) -> None:
    assert spoken_tags(plain_words(said), plain_words(heard)) == count
