"""The lexicon is large enough, free of doubles, and its numbers are the lab's own readings."""

from __future__ import annotations

import pytest

from labkit.text.numbers import english
from labkit.training.lexicon import COMMANDS, GROUPS, LEXICON, NUMBERS, number_words


def test_every_word_stands_once_and_can_be_a_token() -> None:
    assert len(LEXICON) == len(set(LEXICON)) == sum(map(len, GROUPS.values()))
    assert all(word.isascii() and word.isalpha() and word.islower() for word in LEXICON)


def test_the_domain_is_as_large_as_it_was_meant_to_be() -> None:
    assert len(COMMANDS) >= 60
    assert {"yes", "no", "stop", "go", "left", "right", "monday", "red", "seconds", "percent"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("number", range(100))
def test_numbers_are_said_as_the_normalizer_reads_them(number: int) -> None:
    assert " ".join(number_words(number)) == english(number)
    assert set(number_words(number)) <= set(NUMBERS)


@pytest.mark.parametrize("number", [-1, 100])
def test_numbers_outside_the_domain_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match=r"not in 0 \.\. 99"):
        number_words(number)
