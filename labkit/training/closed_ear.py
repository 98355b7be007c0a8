"""A recognizer that can answer nothing but what the domain holds (pocketsphinx with closed grammars).

It is told whether to expect one word, a string of digits or a sentence; never which. Sharper than free recognition
where there is little context, and blind to everything outside the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from labkit.training import grammar
from labkit.training.align import to_recognizer
from labkit.training.corpus import DIGITS, words_of
from labkit.training.lexicon import GROUPS, LEXICON

# What a further word costs, chosen on the teacher's speech: with the recognizer's own (0.65) it hears words at the ends
# of digit strings that nobody said, and gets twice as many words of sentences wrong.
STRING_PENALTY, SENTENCE_PENALTY = 1e-4, 1e-2


class ClosedEar:
    def __call__(self, audio: np.ndarray, text: str) -> str:
        """The words heard in audio [N] at 24 kHz: of what `text` is one of (a word, a digit string, a sentence)."""
        said = words_of(text)
        kind = "digits" if set(said) <= set(DIGITS) else "sentences"
        if len(said) == 1:
            kind = "one-digit" if kind == "digits" else "one-word"
        recognizer = self._sentences if kind == "sentences" else self._strings
        recognizer.activate_search(kind)
        recognizer.start_utt()
        recognizer.process_raw(to_recognizer(audio), full_utt=True)
        recognizer.end_utt()
        hypothesis = recognizer.hyp()
        return hypothesis.hypstr if hypothesis else ""

    @cached_property
    def _strings(self) -> Any:
        digits = " | ".join(DIGITS)
        return _recognizer(
            STRING_PENALTY,
            {"digits": f"( {digits} )+", "one-digit": digits, "one-word": " | ".join(LEXICON)},
        )

    @cached_property
    def _sentences(self) -> Any:
        spoken = "[<opening>] ( <order> | <phrase> ) [and <order>] [<ending>]"
        return _recognizer(SENTENCE_PENALTY, {"sentences": spoken}, sentence_rules())


def sentence_rules() -> dict[str, str]:
    """The rules of the domain's sentences (`grammar.py`), as JSGF writes them."""

    def one_of(patterns: Sequence[str]) -> str:
        return " | ".join(dict.fromkeys(pattern.replace("|", " ") for pattern in patterns))

    return {
        **{name: " | ".join(words) for name, words in GROUPS.items()},
        "number": "<digit> | <teen> | <tens> [<digit>]",
        "digits": "<digit> <digit> <digit> [<digit>]",
        "order": one_of(grammar.ORDERS),
        "phrase": one_of(grammar.PHRASES),
        "opening": one_of(grammar.OPENINGS),
        "ending": one_of(grammar.ENDINGS),
    }


def _recognizer(penalty: float, searches: dict[str, str], rules: dict[str, str] | None = None) -> Any:
    """A pocketsphinx decoder with one search per public rule; `rules` are what those refer to."""
    from pocketsphinx import Decoder

    decoder = Decoder(samprate=16_000, loglevel="FATAL", bestpath=False, cmn="batch", wip=penalty)
    private = "".join(f"<{name}> = {rule}; " for name, rule in (rules or {}).items())
    for name, rule in searches.items():
        decoder.add_jsgf_string(name, f"#JSGF V1.0; grammar d; {private}public <said> = {rule};")
    return decoder
