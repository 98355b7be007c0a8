"""Training and the packed tokenizer must read a text alike."""

from __future__ import annotations

import pytest

from labkit.text.prompts import code_prompt
from labkit.text.tokenizer import write_word_tokenizer
from labkit.training.vocabulary import DOMAIN, TOKENS, prompt_ids, split_marks, word_positions


@pytest.mark.parametrize(
    "text", ["one", "three one four.", "nine two, six five zero eight", "turn left [uv_break] now, please."]
)
def test_the_packed_tokenizer_gives_the_ids_of_training(tmp_path, text: str) -> None:
    tokenizer = write_word_tokenizer(tmp_path, DOMAIN)
    assert tokenizer.encode(code_prompt(text, speaker=True)) == prompt_ids(text)


def test_word_positions_point_at_the_words() -> None:
    text = "nine two, six."
    ids = prompt_ids(text)
    assert [TOKENS[ids[p]] for p in word_positions(text)] == ["nine", "two", "six"]
    assert split_marks(text) == ["nine", "two", ",", "six", "."]


def test_a_word_outside_the_domain_is_refused() -> None:
    with pytest.raises(KeyError, match="hundred"):
        prompt_ids("one hundred")


def test_a_pause_is_a_token_and_no_word() -> None:
    text = "go up, [uv_break] now"
    ids = prompt_ids(text)
    assert [TOKENS[ids[p]] for p in word_positions(text)] == ["go", "up", "now"]
    assert split_marks(text)[3] == "[uv_break]"


@pytest.mark.parametrize(("tempo", "style"), [(1.0, "[speed_5]"), (1.26, "[speed_7]"), (0.79, "[speed_3]")])
def test_the_prompt_names_the_pace(tmp_path, tempo: float, style: str) -> None:
    tokenizer = write_word_tokenizer(tmp_path, DOMAIN)
    assert tokenizer.encode(code_prompt("go up", speaker=True, style=style)) == prompt_ids("go up", tempo)
