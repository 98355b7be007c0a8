"""Sentences of a longer text, each short enough to be one utterance.

Splits after full stops, question and exclamation marks and line ends; over-long sentences at pauses, then at blanks.
Abbreviations, decimals and control tokens stay whole. Nothing but blanks between segments is lost.
"""

from __future__ import annotations

import re

from labkit.text import symbols

_ABBREVIATIONS = frozenset(
    (
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "vs",
        "etc",
        "no",
        "fig",
        "e.g",
        "i.e",
        "u.s",
        "u.k",
        "a.m",
        "p.m",
    )
)
_TOKEN = symbols.CONTROL_TOKEN
# a sentence end keeps the closing quotes and brackets and the control tokens that follow it
_END = re.compile(rf"(?:[。！？!?…]+|\.+(?=[\s\"'”’)\]]|\[|$))[\"'”’」』）)\]]*(?:\s*{_TOKEN})*\s*|\s*\n\s*")
_PAUSE = re.compile(r"[,;:，、；：—]+\s*")
_BLANK = re.compile(r"\s+")


def sentences(text: str, max_characters: int = 200) -> tuple[str, ...]:
    """Split `text` into stripped, non-empty segments of at most `max_characters` (longer only for one long word)."""
    if max_characters < 1:
        raise ValueError(f"sentences: max_characters={max_characters} must be at least 1")
    whole = (piece.strip() for piece in _split_sentences(text))
    return tuple(part for piece in whole if piece for part in _shorten(piece, max_characters))


def _split_sentences(text: str) -> list[str]:
    pieces, start = [], 0
    for match in _END.finditer(text):
        if match[0].lstrip().startswith(".") and _is_abbreviation(text[start : match.start()]):
            continue
        pieces.append(text[start : match.end()])
        start = match.end()
    return [*pieces, text[start:]]


def _is_abbreviation(before: str) -> bool:
    word = re.split(r"[\s(\"'“‘\[]", before)[-1].lower()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isascii() and word.isalpha() and word != "i")


def _shorten(sentence: str, limit: int) -> list[str]:
    """Cut at the last pause within the limit, else the last blank, else inside a run of Han, else not at all."""
    parts = []
    while len(sentence) > limit:
        cut = _last_cut(sentence, limit)
        if cut is None:
            break
        parts.append(sentence[:cut].rstrip())
        sentence = sentence[cut:].lstrip()
    return [*parts, sentence] if sentence else parts


def _last_cut(sentence: str, limit: int) -> int | None:
    """The best position within `limit`; a word longer than that is cut at its end; None when nothing is left to cut."""
    for pattern in (_PAUSE, _BLANK):
        cuts = [m.end() for m in pattern.finditer(sentence) if 0 < len(sentence[: m.end()].rstrip()) <= limit]
        cuts = [cut for cut in cuts if cut < len(sentence)]
        if cuts:
            return cuts[-1]
    if "\u4e00" <= sentence[limit - 1] <= "\u9fff" and "\u4e00" <= sentence[limit] <= "\u9fff":
        return limit
    later = [m.end() for p in (_PAUSE, _BLANK) for m in p.finditer(sentence) if 0 < m.end() < len(sentence)]
    return min(later) if later else None
