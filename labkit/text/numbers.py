"""Numbers as words: English and Mandarin readings of digit strings.

Knows integers to 999 999 999, decimals and digit-by-digit readings. Anything longer, or with leading zeros, is read
digit by digit: such strings are names (telephone, order and licence numbers), not amounts.
"""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "zh"]

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
HAN_DIGITS = "零一二三四五六七八九"
_MAX_DIGITS = 9
_JOINER = {"en": " ", "zh": ""}


def read_digits(digits: str, language: Language) -> str:
    """Digit by digit: "304" -> "three zero four" or "三零四"."""
    words = HAN_DIGITS if language == "zh" else DIGITS
    return _JOINER[language].join(words[int(digit)] for digit in digits)


def read_integer(digits: str, language: Language) -> str:
    """An amount: "314" -> "three hundred and fourteen" or "三百一十四"; digit by digit when it is none."""
    if len(digits) > _MAX_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return read_digits(digits, language)
    return english(int(digits)) if language == "en" else mandarin(int(digits))


def read_up_to_99(digits: str, language: Language) -> str:
    """An amount as far as ninety-nine: "42" -> "forty two"; anything else digit by digit."""
    return read_integer(digits, language) if len(digits) <= 2 else read_digits(digits, language)


def read_decimal(whole: str, fraction: str, language: Language) -> str:
    """ "3", "14" -> "three point one four" or "三点一四"."""
    point = " point " if language == "en" else "点"
    return f"{read_integer(whole, language)}{point}{read_digits(fraction, language)}"


def english(number: int) -> str:
    """0 .. 999 999 999 in words, with "and" before the tens of a hundred, as it is commonly spoken."""
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return TEENS[number - 10]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens - 2] + (f" {DIGITS[ones]}" if ones else "")
    for size, name in ((1_000_000, "million"), (1_000, "thousand")):
        if number >= size:
            count, rest = divmod(number, size)
            tail = "" if not rest else f" and {english(rest)}" if rest < 100 else f" {english(rest)}"
            return f"{english(count)} {name}{tail}"
    hundreds, rest = divmod(number, 100)
    return f"{DIGITS[hundreds]} hundred" + (f" and {english(rest)}" if rest else "")


def english_ordinal(number: int) -> str:
    """1 -> "first", 22 -> "twenty second", 30 -> "thirtieth"."""
    head, _, last = english(number).rpartition(" ")
    regular = f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"
    return f"{head} {_ORDINALS.get(last, regular)}".lstrip()


def mandarin(number: int) -> str:
    """0 .. 999 999 999 in Han numerals: 10 -> 十, 105 -> 一百零五, 20 000 -> 二万."""
    if number == 0:
        return HAN_DIGITS[0]
    parts: list[str] = []
    for size, name in ((100_000_000, "亿"), (10_000, "万"), (1, "")):
        group, number = divmod(number, size)
        if group:
            # a gap before this group, or thousands missing in it, is read as one zero
            gap = "零" if parts and (group < 1000 or parts[-1] == "") else ""
            parts.append(f"{gap}{_han_group(group)}{name}")
        elif parts:
            parts.append("")
    words = "".join(parts)
    return words.removeprefix("一") if words.startswith("一十") else words


def _han_group(number: int) -> str:
    """1 .. 9999."""
    words, gap = "", False
    for size, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, size)
        if digit:
            words += ("零" if gap and words else "") + HAN_DIGITS[digit] + name
            gap = False
        else:
            gap = True
    return words
