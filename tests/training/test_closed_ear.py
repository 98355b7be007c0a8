"""The closed recognizer's grammar holds every sentence of the domain and nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from labkit.training.closed_ear import ClosedEar, sentence_rules
from labkit.training.corpus import DIGITS, words_of
from labkit.training.grammar import LONGEST, Grammar, words_of_sentence
from labkit.training.speech import HeldOut

ROOT = Path(__file__).parents[2]
SENTENCE = "[<opening>] ( <order> | <phrase> ) [and <order>] [<ending>]"


def expanded(rule: str, rules: dict[str, str]) -> str:
    """A JSGF rule with every rule that it refers to in its place."""
    return re.sub(r"<(\w+)>", lambda name: f"( {expanded(rules[name[1]], rules)} )", rule)


@pytest.fixture(scope="module")
def sentence() -> re.Pattern[str]:
    """The rules as a regular expression over words that each end in a space."""
    rule = expanded(SENTENCE, sentence_rules())
    optional = rule.replace("[", "(").replace("]", ")?")
    return re.compile(re.sub(r"[a-z]+", r"(?:\g<0>\\ )", optional), re.VERBOSE)


def test_it_holds_what_the_grammar_draws_and_what_is_held_out(sentence: re.Pattern[str]) -> None:
    grammar, rng = Grammar(), random.Random(1)
    drawn = [words_of_sentence(grammar.draw(rng.randrange(2, LONGEST + 1), rng)) for _ in range(200)]
    held = [tuple(words_of(text)) for text in HeldOut.from_calib(ROOT / "calib").domain]
    strange = [words for words in (*drawn, *held) if not sentence.fullmatch("".join(f"{w} " for w in words))]
    assert not strange


def test_it_does_not_hold_other_orders_of_the_words(sentence: re.Pattern[str]) -> None:
    assert sentence.fullmatch("open the blue door ")
    for words in ("open door the blue ", "the the door ", "turn ", "seven turn left "):
        assert not sentence.fullmatch(words)


def test_it_answers_with_what_the_text_is_one_of() -> None:
    pytest.importorskip("pocketsphinx")
    noise = np.random.default_rng(0).normal(0, 0.1, 24_000).astype(np.float32)
    ear = ClosedEar()
    assert set(ear(noise, "one two").split()) <= set(DIGITS)
    assert len(ear(noise, "garage").split()) <= 1
    assert "<" not in ear(noise, "open the door")
