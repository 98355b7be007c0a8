"""Text as people type it -> text that a voice can read, by ordered, named rules.

Every rule can be switched off and the report says which rule changed what. The rules run until nothing changes any
more, so normalizing twice equals normalizing once. Control tokens such as `[uv_break]` are kept verbatim; tokens that
build prompts are removed. Marks are reduced to `, . ， 。 、`, the ones ChatTTS was trained with (a question mark
becomes a full stop). Does not know vocabularies, except by their number words: a voice without "hundred" reads digit
by digit what it has no words for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from labkit.errors import SpecError
from labkit.text.language import Context, NumberReading, detect_language, first_language
from labkit.text.numbers import DIGITS, TEENS, TENS, Language
from labkit.text.rules import RULE_NAMES, RULES

_MAX_PASSES = 8


@dataclass(frozen=True)
class NormalizeOptions:
    """`off` names rules to skip; `language` "auto" decides by the characters around each number, symbol and mark."""

    off: frozenset[str] = frozenset()
    language: Literal["auto", "en", "zh"] = "auto"

    def __post_init__(self) -> None:
        unknown = sorted(set(self.off) - set(RULE_NAMES))
        if unknown:
            raise SpecError(f"normalization rule {unknown[0]!r} is unknown; rules: {', '.join(RULE_NAMES)}.")


ALL_RULES = NormalizeOptions()


@dataclass(frozen=True)
class Change:
    """One rule that did something, with the whole text before and after."""

    rule: str
    before: str
    after: str


@dataclass(frozen=True)
class NormalizationReport:
    """What became of a text. `unknown_words` is filled by the check against a voice's vocabulary."""

    original: str
    text: str
    language: Language
    number_reading: NumberReading
    changes: tuple[Change, ...]
    unknown_words: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules that changed the text, each once, in order."""
        return tuple(dict.fromkeys(change.rule for change in self.changes))


def normalize(
    text: str, options: NormalizeOptions | None = None, vocabulary: Collection[str] | None = None
) -> tuple[str, NormalizationReport]:
    """Return the readable text and the report. `vocabulary`: the voice's words when it knows a closed set of them."""
    options = options or ALL_RULES
    language = detect_language(text) if options.language == "auto" else options.language
    forced = options.language != "auto"
    context = Context(language if forced else first_language(text), forced, _number_reading(vocabulary))
    current, changes = text, []
    for _ in range(_MAX_PASSES):
        before_pass = current
        if not forced:  # reading "2nd" or "3 km" in Mandarin takes letters away, perhaps the first ones
            context = replace(context, fallback=first_language(current))
        for rule in RULES:
            if rule.name in options.off:
                continue
            after = rule.apply(current, context)
            if after != current:
                changes.append(Change(rule.name, current, after))
                current = after
        if current == before_pass:
            break
    return current, NormalizationReport(text, current, language, context.reading, tuple(changes))


def _number_reading(vocabulary: Collection[str] | None) -> NumberReading:
    """How a voice reads numbers, told by the number words it knows; None and foreign words: like anybody."""
    known = set(vocabulary or ())
    if "hundred" in known or not set(DIGITS) <= known:
        return "amount"
    return "tens" if {*TEENS, *TENS} <= known else "digits"
