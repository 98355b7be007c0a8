"""The rules that put words for what is not one: currencies, units, signs and numbers, in English or Mandarin."""

from __future__ import annotations

import re

from labkit.text import symbols
from labkit.text.language import Context
from labkit.text.numbers import english_ordinal, read_decimal, read_digits, read_integer, read_up_to_99

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_CURRENCY = re.compile(rf"([{re.escape(''.join(symbols.CURRENCIES))}])\s?({_NUMBER})")
_PERCENT = re.compile(rf"({_NUMBER})\s?%")
_UNIT = re.compile(
    rf"({_NUMBER})\s?({'|'.join(sorted(map(re.escape, symbols.UNITS), key=len, reverse=True))})(?![A-Za-z0-9/])"
)
_SYMBOL = re.compile(f"[{re.escape(''.join(symbols.SYMBOLS))}]")


def read_symbols(text: str, context: Context) -> str:
    """Currencies, percentages, units and mathematical signs as words; the numbers stay for the next rule."""

    def currency(match: re.Match[str]) -> str:
        (one, many), han = symbols.CURRENCIES[match[1]]
        if context.language_at(text, *match.span()) == "zh":
            return f"{match[2]}{han}"
        return f"{match[2]} {one if match[2] == '1' else many} "

    text = _CURRENCY.sub(currency, text)

    def percent(match: re.Match[str]) -> str:
        zh = context.language_at(text, *match.span()) == "zh"
        return f"百分之{match[1]}" if zh else f"{match[1]} percent "

    text = _PERCENT.sub(percent, text)

    def unit(match: re.Match[str]) -> str:
        words, han = symbols.UNITS[match[2]]
        zh = context.language_at(text, *match.span()) == "zh"
        return f"{match[1]}{han}" if zh else f"{match[1]} {words} "

    text = _UNIT.sub(unit, text)

    def symbol(match: re.Match[str]) -> str:
        words, han = symbols.SYMBOLS[match[0]]
        return han if context.language_at(text, *match.span()) == "zh" else f" {words} "

    return _SYMBOL.sub(symbol, text)


_RANGE = re.compile(r"(?<=\d)(?:[-–—~]|\s[-–—~]\s)(?=\d)")
_DOTTED = re.compile(r"(?<![\d.])\d+(?:\.\d+){2,}(?![\d.])")
_YEAR = re.compile(r"(?<!\d)\d{4}(?=年)")
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?![\d:])")
_AMOUNT = re.compile(r"((?<![\w.])-)?(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(\d+))?((?:st|nd|rd|th)\b)?")


def read_numbers(text: str, context: Context) -> str:
    """Integers, decimals, ordinals, ranges and clock times as words; digit by digit what a voice has no words for."""
    is_small = context.reading != "amount"

    def between(match: re.Match[str]) -> str:
        return "到" if context.language_at(text, *match.span()) == "zh" else " to "

    text = _RANGE.sub(" " if context.reading == "digits" else between, text)
    text = _YEAR.sub(lambda m: read_digits(m[0], "zh"), text)

    def dotted(match: re.Match[str]) -> str:
        point = "点" if context.language_at(text, *match.span()) == "zh" else " point "
        return match[0].replace(".", point)

    text = _DOTTED.sub(lambda m: m[0].replace(".", " ") if is_small else dotted(m), text)

    def clock(match: re.Match[str]) -> str:
        return (
            f"{match[1]}点{match[2]}"
            if context.language_at(text, *match.span()) == "zh"
            else f"{match[1]} {match[2]}"
        )

    text = _CLOCK.sub(r"\1 \2" if is_small else clock, text)

    def amount(match: re.Match[str]) -> str:
        sign, whole, fraction, ordinal = match.groups()
        whole = whole.replace(",", "")
        language = context.language_at(text, *match.span())
        if context.reading == "tens" and not fraction:
            words = read_up_to_99(whole, language)
        elif is_small:
            words = read_digits(whole + (fraction or ""), language)
        elif fraction:
            words = read_decimal(whole, fraction, language)
        elif ordinal and language == "en" and len(whole) <= 9:
            words = english_ordinal(int(whole))
        else:
            words = read_integer(whole, language)
        if sign and not is_small:
            words = f"负{words}" if language == "zh" else f"minus {words}"
        return words if language == "zh" else f" {words} "

    return _AMOUNT.sub(amount, text)
