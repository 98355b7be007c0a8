from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.text.numbers import (
    DIGITS,
    HAN_DIGITS,
    english,
    english_ordinal,
    mandarin,
    read_decimal,
    read_digits,
    read_integer,
)


@pytest.mark.parametrize(
    ("number", "words", "han"),
    [
        (0, "zero", "零"),
        (10, "ten", "十"),
        (19, "nineteen", "十九"),
        (40, "forty", "四十"),
        (101, "one hundred and one", "一百零一"),
        (110, "one hundred and ten", "一百一十"),
        (314, "three hundred and fourteen", "三百一十四"),
        (1005, "one thousand and five", "一千零五"),
        (2024, "two thousand and twenty four", "二千零二十四"),
        (20_000, "twenty thousand", "二万"),
        (100_001, "one hundred thousand and one", "十万零一"),
        (100_000_001, "one hundred million and one", "一亿零一"),
    ],
)
def test_amounts_are_read_as_they_are_spoken(number: int, words: str, han: str) -> None:
    assert english(number) == words
    assert mandarin(number) == han


def english_words(line: str) -> list[str]:
    return line.split()


def _parse_english(words: str) -> int:
    """An independent reader of English number words."""
    teens = english_words("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
    tens = english_words("twenty thirty forty fifty sixty seventy eighty ninety")
    units = {w: i for i, w in enumerate([*DIGITS, *teens])} | {w: 10 * i for i, w in enumerate(tens, 2)}
    total = group = 0
    for word in words.split():
        if word == "hundred":
            group *= 100
        elif word in ("thousand", "million"):
            total, group = total + group * {"thousand": 1_000, "million": 1_000_000}[word], 0
        elif word != "and":
            group += units[word]
    return total + group


def _parse_han(words: str) -> int:
    """An independent reader of Han numerals."""
    total = group = digit = 0
    for character in words:
        if character in HAN_DIGITS:
            digit = HAN_DIGITS.index(character)
        elif character in "十百千":
            group += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[character]
            digit = 0
        else:
            total, group, digit = total + (group + digit) * {"万": 10_000, "亿": 10**8}[character], 0, 0
    return total + group + digit


@given(st.integers(0, 999_999_999))
def test_words_read_back_as_the_number(number: int) -> None:
    assert _parse_english(english(number)) == number
    assert _parse_han(mandarin(number)) == number


@given(st.integers(0, 999_999_999))
def test_mandarin_never_doubles_a_zero(number: int) -> None:
    assert "零零" not in mandarin(number)


@pytest.mark.parametrize("digits", ["007", "0123456789", "12345678901234"])
def test_names_made_of_digits_are_spelled(digits: str) -> None:
    assert read_integer(digits, "en") == " ".join(DIGITS[int(d)] for d in digits)
    assert read_integer(digits, "zh") == "".join(HAN_DIGITS[int(d)] for d in digits)


def test_decimals_and_digits() -> None:
    assert read_decimal("3", "14", "en") == "three point one four"
    assert read_decimal("36", "50", "zh") == "三十六点五零"
    assert read_digits("304", "en") == "three zero four"


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "first"),
        (12, "twelfth"),
        (20, "twentieth"),
        (22, "twenty second"),
        (100, "one hundredth"),
        (13, "thirteenth"),
    ],
)
def test_ordinals(number: int, word: str) -> None:
    assert english_ordinal(number) == word


@given(st.integers(0, 999_999_999))
def test_ordinals_end_like_ordinals(number: int) -> None:
    assert re.search(r"(th|first|second|third)$", english_ordinal(number))
