"""Training and the packed tokenizer must read a text alike."""

from __future__ import annotations

import pytest

from labkit.text.prompts import code_prompt
from labkit.text.tokenizer import write_word_tokenizer
from labkit.training.vocabulary import DOMAIN, TOKENS, prompt_ids, split_marks, word_positions


@pytest.mark.parametrize("text", ["one", "three one four.", "nine two, six five zero eight", "zero, zero."])
def test_the_packed_tokenizer_gives_the_ids_of_training(tmp_path, text: str) -> None:
    tokenizer = write_word_tokenizer(tmp_path, DOMAIN)
    assert tokenizer.encode(code_prompt(text, speaker=True)) == prompt_ids(text)


def test_word_positions_point_at_the_words() -> None:
    text = "nine two, six."
    ids = prompt_ids(text)
    assert [TOKENS[ids[p]] for p in word_positions(text)] == ["nine", "two", "six"]
    assert split_marks(text) == ["nine", "two", ",", "six", "."]


def test_a_word_outside_the_domain_is_refused() -> None:
    with pytest.raises(KeyError, match="ten"):
        prompt_ids("one ten")
