from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import CheckpointError
from labkit.text.tokenizer import Tokenizer, write_synthetic_tokenizer, write_word_tokenizer
from labkit.text.tokens import BERT_TOKENS, CONTROL_TOKENS

WORDS = ("zero", "one", "two", "three", ",", "五")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return write_word_tokenizer(tmp_path_factory.mktemp("digits"), WORDS)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return write_synthetic_tokenizer(tmp_path_factory.mktemp("synthetic"), 21_178)


def test_control_tokens_fill_the_published_vocabulary() -> None:
    assert 21_128 + len(CONTROL_TOKENS) == 21_178 and len(set(CONTROL_TOKENS)) == 50


def test_ids_stand_in_the_promised_order(digits: Tokenizer) -> None:
    names = [*BERT_TOKENS, *WORDS, *CONTROL_TOKENS]
    assert [digits.token_id(name) for name in names] == list(range(len(digits)))


def test_a_prompt_becomes_its_tokens_and_nothing_more(digits: Tokenizer) -> None:
    ids = digits.encode("[Stts][spk_emb][speed_5]One two,[uv_break]three 五[Ptts]")
    names = ["[Stts]", "[spk_emb]", "[speed_5]", "one", "two", ",", "[uv_break]", "three", "五", "[Ptts]"]
    assert ids == [digits.token_id(name) for name in names]
    assert digits.decode(ids[3:6]) == "one two,"


def test_unknown_words_are_named_once_as_they_were_written(digits: Tokenizer) -> None:
    text = "[Stts]One Elephant two elephants, Elephant x-ray[Ptts]"
    assert digits.unknown_words(text) == ("Elephant", "elephants", "x", "-", "ray")
    assert digits.unknown_words("one two, three") == ()


def test_words_that_contain_a_known_one_are_unknown_as_a_whole(digits: Tokenizer) -> None:
    assert digits.words("onetwo one") == [("onetwo", False), ("one", True)]
    assert digits.encode("onetwo") == [digits.unknown_id]


def test_pieces_of_one_word_are_one_word(synthetic: Tokenizer) -> None:
    assert len(synthetic.encode("zebra")) > 1
    assert synthetic.words("a zebra") == [("a", True), ("zebra", True)]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=80))
def test_any_text_has_ids_and_words_of_the_text(synthetic: Tokenizer, text: str) -> None:
    assert all(0 <= i < 21_178 for i in synthetic.encode(text))
    assert all(word in text for word, _ in synthetic.words(text))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["one", "two", "three", "[uv_break]", "[laugh]"]), min_size=1, max_size=12))
def test_known_text_survives_a_round(digits: Tokenizer, words: list[str]) -> None:
    ids = digits.encode(" ".join(words))
    assert digits.encode(digits.decode(ids)) == ids and len(ids) == len(words)


def test_synthetic_tokenizers_have_exactly_the_asked_size(synthetic: Tokenizer, tmp_path: Path) -> None:
    assert len(synthetic) == 21_178 and synthetic.token_id("[break_0]") == 21_128 + 19
    assert len(write_synthetic_tokenizer(tmp_path, 150)) == 150
    assert synthetic.unknown_words("Hello, world! 你好。") == ()
    for size in (50, 100_000):
        with pytest.raises(ValueError, match=f"size {size}"):
            write_synthetic_tokenizer(tmp_path, size)


def test_the_files_say_what_berts_loader_looks_for(digits: Tokenizer, tmp_path: Path) -> None:
    write_word_tokenizer(tmp_path, WORDS)
    config = json.loads((tmp_path / "tokenizer" / "tokenizer_config.json").read_text(encoding="utf-8"))
    special = json.loads((tmp_path / "tokenizer" / "special_tokens_map.json").read_text(encoding="utf-8"))
    assert config["tokenizer_class"] == "BertTokenizer" and config["do_lower_case"] is True
    assert special["unk_token"] == "[UNK]" and "[spk_emb]" in special["additional_special_tokens"]


@pytest.mark.parametrize("words", [["One"], ["two words"], [""]])
def test_words_that_could_never_match_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="single and lower case"):
        write_word_tokenizer(tmp_path, words)


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: missing"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="not a tokenizer"):
        Tokenizer.from_folder(tmp_path)


def test_a_vocabulary_without_a_control_token_says_which(digits: Tokenizer) -> None:
    assert "[spk_emb]" in digits and "[nothing]" not in digits
    with pytest.raises(CheckpointError, match=r"'\[nothing\]'"):
        digits.token_id("[nothing]")
    bare = tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0}))
    with pytest.raises(CheckpointError, match=r"'\[UNK\]'"):
        Tokenizer(bare, "bare")


def test_stored_padding_and_truncation_do_not_apply(tmp_path: Path) -> None:
    write_word_tokenizer(tmp_path, WORDS)
    path = str(tmp_path / "tokenizer" / "tokenizer.json")
    stored = tokenizers.Tokenizer.from_file(path)
    stored.enable_truncation(2)
    stored.enable_padding(length=9)
    stored.save(path)
    assert len(Tokenizer.from_folder(tmp_path).encode("one two three")) == 3
