"""Sentences have the asked length, hold lexicon words only, and use the words evenly."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.training.corpus import DIGITS
from labkit.training.grammar import LONGEST, Grammar, words_of_sentence
from labkit.training.lexicon import GROUPS, LEXICON


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), length=st.integers(1, LONGEST))
def test_a_sentence_has_the_asked_length_and_only_known_words(seed: int, length: int) -> None:
    words = words_of_sentence(Grammar().draw(length, random.Random(seed)))
    assert len(words) == length and set(words) <= set(LEXICON)
    assert all(a != b or a in DIGITS for a, b in pairwise(words))


def test_words_are_used_evenly() -> None:
    grammar, rng = Grammar(), random.Random(0)
    for i in range(400):
        grammar.draw(1 + i % 8, rng)
    counts = [grammar.used[word] for word in LEXICON if word not in GROUPS["glue"]]
    assert min(counts) * 4 >= max(counts)


def test_words_alone_come_round_before_any_comes_twice() -> None:
    grammar, rng = Grammar(), random.Random(0)
    assert {words_of_sentence(grammar.draw(1, rng))[0] for _ in LEXICON} == set(LEXICON)


@pytest.mark.parametrize("length", [0, LONGEST + 1])
def test_lengths_that_the_grammar_has_not_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match="words, not"):
        Grammar().draw(length, random.Random(0))
