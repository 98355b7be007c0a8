"""From written text to the words that are compared: what a recognizer may write differently without being wrong.

It knows spelling only. In the closed digit domain (every reference word is a digit) the recognizer's numerals and
homophones are read as digits, because no other word can have been meant.
"""

from __future__ import annotations

import re
import unicodedata

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
TENS = {"twenty": 2, "thirty": 3, "forty": 4, "fifty": 5, "sixty": 6, "seventy": 7, "eighty": 8, "ninety": 9}
HOMOPHONES = {
    "oh": "zero", "o": "zero", "nought": "zero", "won": "one", "to": "two", "too": "two", "for": "four",
    "fore": "four", "ate": "eight", "a": "eight", "sicks": "six",
}  # fmt: skip
CONTROL = re.compile(r"\[[a-zA-Z]+(?:_[a-zA-Z0-9]+)*\]")


def plain_words(text: str) -> list[str]:
    """Lower-case words of English text: control tokens and punctuation gone, numerals spelled digit by digit.

    "[uv_break] Call 729!" -> call seven two nine. Apostrophes inside words stay.
    """
    text = unicodedata.normalize("NFKC", CONTROL.sub(" ", text)).lower().replace("’", "'")
    text = re.sub(r"[0-9]", lambda digit: f" {DIGITS[int(digit[0])]} ", text)
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text)


def is_digit_domain(words: list[str]) -> bool:
    """True when every word is a digit, so that the closed-domain reading applies."""
    return bool(words) and all(word in DIGITS for word in words)


def heard_digits(words: list[str]) -> list[str]:
    """What a recognizer wrote, read in the digit domain.

    Homophones become digits, and number words are read as their written figures: a recognizer that writes
    "forty two" for 4-2 saw the same figures. Other words stay, and count as errors.
    """
    digits: list[str] = []
    for index, word in enumerate(words):
        if word in TEENS:
            digits += ["one", DIGITS[TEENS.index(word)]]
        elif word in TENS:
            following = words[index + 1] if index + 1 < len(words) else ""
            digits += [DIGITS[TENS[word]]] if following in DIGITS[1:] else [DIGITS[TENS[word]], "zero"]
        else:
            digits.append(HOMOPHONES.get(word, word))
    return digits
