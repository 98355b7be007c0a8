"""The ordered rules of text normalization, each a small function on strings.

Knows characters, symbols and how they are read in English and Mandarin. The driver in `normalize` decides which rules
run and reports on them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from labkit.text import symbols
from labkit.text.numbers import Language, english_ordinal, read_decimal, read_digits, read_integer

NumberReading = Literal["amount", "digits"]

_TOKEN = re.compile(f"({symbols.CONTROL_TOKEN})")


@dataclass(frozen=True)
class Context:
    """What a rule may know beside the text: the language where no letter is near, whether
    that holds everywhere, and how numbers are read."""

    fallback: Language
    forced: bool
    reading: NumberReading

    def language_at(self, text: str, start: int, end: int) -> Language:
        """Language of the nearest letter on either side of text[start:end], else the fall-back."""
        if not self.forced:
            for distance in range(1, 13):
                for position in (start - distance, end + distance - 1):
                    if 0 <= position < len(text) and text[position].isalpha():
                        return "zh" if is_han(text[position]) else "en"
        return self.fallback


def detect_language(text: str) -> Language:
    """Mandarin when Han characters outnumber the words in other letters."""
    plain = _TOKEN.sub(" ", text)
    han = sum(map(is_han, plain))
    words = len(re.findall(r"[^\W\d_]+", "".join(" " if is_han(c) else c for c in plain)))
    return "zh" if han > words else "en"


def first_language(text: str) -> Language:
    """Language of the first letter. Reading numbers and signs as words never changes it, unlike a majority."""
    first = next((c for c in _TOKEN.sub(" ", text) if c.isalpha()), "a")
    return "zh" if is_han(first) else "en"


def is_han(character: str) -> bool:
    """A Han ideograph of the unified blocks."""
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf" or character >= "\U00020000"


def _remove_control(text: str, context: Context) -> str:
    """NUL and other control, format, private, surrogate and unassigned characters; line ends become blanks."""
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if category in ("Zl", "Zp") or character in "\t\n\r\v\f":
            kept.append(" ")
        elif category[0] != "C":
            kept.append(character)
    return "".join(kept)


# Emoji and pictographs: dingbats, arrows and technical signs used as emoji, the supplementary emoji planes, flags,
# keycaps, skin tones and the selectors that join them.
_EMOJI = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\ufe00-\ufe0f\u20e3\U0001f000-\U0001faff\U000e0000-\U000e01ef]"
)


def _remove_emoji(text: str, context: Context) -> str:
    return _EMOJI.sub(" ", text)


def _fold_width(text: str, context: Context) -> str:
    """Full-width letters, digits and marks, ligatures, circled and other compatibility forms (NFKC)."""
    return unicodedata.normalize("NFKC", text)


_PROMPT = re.compile("|".join(map(re.escape, symbols.PROMPT_TOKENS)))


def _remove_prompt_tokens(text: str, context: Context) -> str:
    """Until none is left: removing one may join the halves of another."""
    while _PROMPT.search(text):
        text = _PROMPT.sub("", text)
    return text


_QUOTE = re.compile(f"[{re.escape(symbols.QUOTES)}]")
_APOSTROPHE = re.compile(r"(?<=[^\W\d_])[’‘`´＇](?=[^\W\d_])")
_LOOSE_APOSTROPHE = re.compile(r"(?<![^\W\d_])'|'(?![^\W\d_])")


def _remove_quotes(text: str, context: Context) -> str:
    """Quotation marks go; an apostrophe inside a word stays, as a plain one."""
    return _LOOSE_APOSTROPHE.sub(" ", _QUOTE.sub(" ", _APOSTROPHE.sub("'", text)))


_BRACKET = re.compile(rf"[{re.escape(symbols.BRACKETS.replace('<', '').replace('>', ''))}]")


def _remove_brackets(text: str, context: Context) -> str:
    """A bracket is read as a pause."""
    return _BRACKET.sub(", ", text)


_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_CURRENCY = re.compile(rf"([{re.escape(''.join(symbols.CURRENCIES))}])\s?({_NUMBER})")
_PERCENT = re.compile(rf"({_NUMBER})\s?%")
_UNIT = re.compile(
    rf"({_NUMBER})\s?({'|'.join(sorted(map(re.escape, symbols.UNITS), key=len, reverse=True))})(?![A-Za-z0-9/])"
)
_SYMBOL = re.compile(f"[{re.escape(''.join(symbols.SYMBOLS))}]")


def _read_symbols(text: str, context: Context) -> str:
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


def _read_numbers(text: str, context: Context) -> str:
    """Integers, decimals, ordinals, ranges and clock times as words; digit by digit for a voice of digit words."""
    digits_only = context.reading == "digits"

    def between(match: re.Match[str]) -> str:
        return "到" if context.language_at(text, *match.span()) == "zh" else " to "

    text = _RANGE.sub(" " if digits_only else between, text)
    text = _YEAR.sub(lambda m: read_digits(m[0], "zh"), text)

    def dotted(match: re.Match[str]) -> str:
        point = "点" if context.language_at(text, *match.span()) == "zh" else " point "
        return match[0].replace(".", point)

    text = _DOTTED.sub(lambda m: m[0].replace(".", " ") if digits_only else dotted(m), text)

    def clock(match: re.Match[str]) -> str:
        return (
            f"{match[1]}点{match[2]}"
            if context.language_at(text, *match.span()) == "zh"
            else f"{match[1]} {match[2]}"
        )

    text = _CLOCK.sub(r"\1 \2" if digits_only else clock, text)

    def amount(match: re.Match[str]) -> str:
        sign, whole, fraction, ordinal = match.groups()
        whole = whole.replace(",", "")
        language = context.language_at(text, *match.span())
        if digits_only:
            words = read_digits(whole + (fraction or ""), language)
        elif fraction:
            words = read_decimal(whole, fraction, language)
        elif ordinal and language == "en" and len(whole) <= 9:
            words = english_ordinal(int(whole))
        else:
            words = read_integer(whole, language)
        if sign and not digits_only:
            words = f"负{words}" if language == "zh" else f"minus {words}"
        return words if language == "zh" else f" {words} "

    return _AMOUNT.sub(amount, text)


_STOP = re.compile(f"[{re.escape(symbols.STOPS)}]")
_PAUSE = re.compile(f"[{re.escape(symbols.PAUSES)}]")
_OTHER = re.compile(r"[^\w\s'，。、,.]|_")
_INNER_DOT = re.compile(r"(?<=[A-Za-z0-9])\.(?=[A-Za-z0-9])")
_MARK_RUN = re.compile(r"\s*([,.，。、])[\s,.，。、]*")


def _reduce_marks(text: str, context: Context) -> str:
    """Punctuation to `, .` beside other letters and `， 。 、` beside Han; runs to one mark; what is left to blanks."""
    text = _OTHER.sub(" ", _PAUSE.sub(lambda m: "、" if m[0] == "、" else ",", _STOP.sub(".", text)))
    text = _INNER_DOT.sub(" ", text)

    def mark(match: re.Match[str]) -> str:
        run = match[0]
        stop = "." in run or "。" in run
        if context.language_at(text, match.start(), match.end()) == "zh":
            return "。" if stop else "、" if run.strip() == "、" else "，"
        return ". " if stop else ", "

    return _MARK_RUN.sub(mark, text)


_BLANKS = re.compile(r"\s+")


def _tidy_blanks(text: str, context: Context) -> str:
    """One blank between words, none between Han characters nor before marks; no marks or blanks at the start."""
    text = _BLANKS.sub(" ", text).strip()
    text = re.sub(r" (?=[,.，。、])", "", text)
    text = "".join(
        c
        for i, c in enumerate(text)
        if c != " " or not (_touches_han(text[i - 1]) and _touches_han(text[i + 1]))
    )
    return text.lstrip(" ,.，。、")


def _touches_han(character: str) -> bool:
    return is_han(character) or character in "，。、"


def _outside_tokens(rule: Callable[[str, Context], str]) -> Callable[[str, Context], str]:
    """Apply a rule to the text between control tokens."""

    def apply(text: str, context: Context) -> str:
        pieces = _TOKEN.split(text)
        return "".join(piece if i % 2 else rule(piece, context) for i, piece in enumerate(pieces))

    return apply


@dataclass(frozen=True)
class Rule:
    """A named step of normalization; its description is what people read in lists of rules."""

    name: str
    description: str
    apply: Callable[[str, Context], str] = field(repr=False)


RULES: tuple[Rule, ...] = (
    Rule("control", "remove NUL and other control characters", _remove_control),
    Rule("emoji", "remove emoji and pictographs", _remove_emoji),
    Rule("width", "full-width and compatibility forms to plain ones (NFKC)", _fold_width),
    Rule(
        "prompt-tokens",
        "remove tokens that build prompts, such as [Stts] and [spk_emb]",
        _remove_prompt_tokens,
    ),
    Rule("quotes", "remove quotation marks, keep apostrophes", _outside_tokens(_remove_quotes)),
    Rule("brackets", "read brackets as pauses", _outside_tokens(_remove_brackets)),
    Rule("symbols", "read currencies, percentages, units and signs as words", _outside_tokens(_read_symbols)),
    Rule("numbers", "read numbers as words", _outside_tokens(_read_numbers)),
    Rule("marks", "reduce punctuation to the marks the voice knows", _outside_tokens(_reduce_marks)),
    Rule("blanks", "tidy blanks", _tidy_blanks),
)
RULE_NAMES = tuple(rule.name for rule in RULES)
