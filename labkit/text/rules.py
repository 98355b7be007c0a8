"""The ordered rules of text normalization, each a small function on strings.

Knows characters and marks; what is read as words is in `readings`. The driver in `normalize` decides which rules run
and reports on them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field

from labkit.text import symbols
from labkit.text.language import TOKEN, Context, is_han
from labkit.text.readings import read_numbers, read_symbols


def _remove_control(text: str, context: Context) -> str:
    """Format, private, surrogate and unassigned characters go; NUL, other controls and line ends become blanks."""
    kept = []
    for character in text:
        category = unicodedata.category(character)
        if category in (
            "Cc",
            "Zl",
            "Zp",
        ):  # they stand between words; an invisible format character stands in one
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


_BRACKET = re.compile(f"[{re.escape(symbols.BRACKETS)}]")


def _remove_brackets(text: str, context: Context) -> str:
    """A bracket is read as a pause."""
    return _BRACKET.sub(", ", text)


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
        pieces = TOKEN.split(text)
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
    Rule("symbols", "read currencies, percentages, units and signs as words", _outside_tokens(read_symbols)),
    Rule("numbers", "read numbers as words", _outside_tokens(read_numbers)),
    Rule("marks", "reduce punctuation to the marks the voice knows", _outside_tokens(_reduce_marks)),
    Rule("blanks", "tidy blanks", _tidy_blanks),
)
RULE_NAMES = tuple(rule.name for rule in RULES)
