"""Which language a text, or a place in it, is in: English or Mandarin, told by its letters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from labkit.text import symbols
from labkit.text.numbers import Language

NumberReading = Literal["amount", "tens", "digits"]
"""`digits`: one by one; `tens`: amounts to ninety-nine, others one by one; for voices that know no larger number."""

TOKEN = re.compile(f"({symbols.CONTROL_TOKEN})")
"""One control token, as a group, so that `split` keeps it."""


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
    plain = TOKEN.sub(" ", text)
    han = sum(map(is_han, plain))
    words = len(re.findall(r"[^\W\d_]+", "".join(" " if is_han(c) else c for c in plain)))
    return "zh" if han > words else "en"


def first_language(text: str) -> Language:
    """Language of the first letter. Reading numbers and signs as words never changes it, unlike a majority."""
    first = next((c for c in TOKEN.sub(" ", text) if c.isalpha()), "a")
    return "zh" if is_han(first) else "en"


def is_han(character: str) -> bool:
    """A Han ideograph of the unified blocks."""
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf" or character >= "\U00020000"
