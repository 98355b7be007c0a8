"""Refusals before any work: texts that no voice can speak, and words that a voice never learned."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Sequence

from labkit.errors import TextError
from labkit.text import symbols
from labkit.text.tokens import CONTROL_TOKENS

MAX_CHARACTERS = 4000
"""More than the 2048 decode steps of one utterance (43.7 s) can speak in any language; a plain bound, checked first."""

_TOKEN = re.compile(symbols.CONTROL_TOKEN)
_BRACKETED = re.compile(r"\[(\w+)\]", re.ASCII)
_USABLE = tuple(token.strip("[]") for token in CONTROL_TOKENS if _TOKEN.fullmatch(token))
_LIKE_A_TOKEN = 0.76  # of difflib: `laughter` is like `laugh`, `outbreak` and `speech` are like none


class DomainWarning(UserWarning):
    """A text holds words that the voice was not trained on; they will come out as noise or be skipped."""


def check_raw(text: str) -> None:
    """Refuse empty and far too long texts, and misspelt control tokens, before they are normalized."""
    if not isinstance(text, str):
        raise TextError(f"the text is {type(text).__name__}, not a string; give plain text.")
    if not text.strip():
        raise TextError(f"the text {_shown(text)} is empty; give at least one word.")
    if len(text) > MAX_CHARACTERS:
        raise TextError(
            f"the text {_shown(text)} has {len(text)} characters; one utterance takes at most {MAX_CHARACTERS}. "
            'Split it, and say the parts one by one: `labkit say "PART" --out part-1.wav`; in Python, '
            "labkit.text.segment.sentences cuts it."
        )
    for name in _BRACKETED.findall(text):
        if f"[{name}]" not in symbols.PROMPT_TOKENS and name not in _USABLE:
            _refuse_if_like_a_token(name)


def check_normalized(original: str, normalized: str) -> None:
    """Refuse what is left without a word or digit once marks, emoji and control tokens are taken away."""
    if any(character.isalnum() for character in _TOKEN.sub("", normalized)):
        return
    only = "control tokens" if _TOKEN.search(normalized) else "punctuation, blanks or symbols"
    raise TextError(
        f"the text {_shown(original)} holds only {only}, no word to speak; add at least one word."
    )


def check_domain(text: str, unknown: Sequence[str], *, voice: str, closed: bool) -> None:
    """Warn of words outside the voice's vocabulary; refuse when a closed domain knows none of them.

    `unknown`: the words of `text` (normalized) that the tokenizer does not know; `closed`: the voice has a stated
    list of words.
    """
    if not unknown:
        return
    words = re.findall(r"[^\W_]+", _TOKEN.sub(" ", text))
    listed = ", ".join(repr(word) for word in unknown[:12]) + (", …" if len(unknown) > 12 else "")
    if closed and {word.lower() for word in words} <= {word.lower() for word in unknown}:
        raise TextError(
            f"voice {voice!r} knows no word of {_shown(text)} (unknown: {listed}); "
            f"`labkit voices show {voice}` lists what it can say."
        )
    warnings.warn(
        f"voice {voice!r} was not trained on {listed}: expect noise there. "
        f"`labkit voices show {voice}` lists what it can say.",
        DomainWarning,
        stacklevel=3,
    )


def check_length(text: str, tokens: int, positions: int, room: int) -> None:
    """Refuse a prompt that leaves fewer than `room` of the voice's `positions` for speech."""
    if tokens + room > positions:
        raise TextError(
            f"the text {_shown(text)} makes {tokens} tokens, but this voice has {positions} positions for text and "
            f"speech together and needs {room} of them for speech; split the text into sentences."
        )


def _refuse_if_like_a_token(name: str) -> None:
    """Other words in brackets are words, and are spoken."""
    near = difflib.get_close_matches(name.lower(), _USABLE, n=3, cutoff=_LIKE_A_TOKEN)
    if near:
        listed = " or ".join(f"[{token}]" for token in near)
        raise TextError(
            f"[{name}] is no control token; did you mean {listed}? Without brackets it is read as words."
        )


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:24]}…{text[-8:]}")
