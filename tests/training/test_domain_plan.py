"""The domain plan keeps held-out sentences out, is balanced in every prefix, and ties control tokens to the speech."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.text.corpus import load_corpus
from labkit.training.corpus import DIGITS, Item, words_of
from labkit.training.domain_plan import (
    PAUSE,
    DomainRecipe,
    digit_runs,
    domain_plan,
    held_out_texts,
    written,
)
from labkit.training.lexicon import LEXICON, TENS
from labkit.training.pace import speed_token

TEST_LIST = "nano-domain-heldout"
FORBIDDEN_LISTS = ("nano-domain-eval", "nano-heldout", "nano-eval")

SMALL = DomainRecipe(voices=("a", "b"), items=90, valid=5)
TEST = ["close the window", "move two meters up"]
FORBIDDEN = ["turn left", "turn right", "forty two", "go up", "go down", "red light", "call five four three"]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_training_never_says_a_held_out_sentence_however_marked(seed: int) -> None:
    items = domain_plan(replace(SMALL, seed=seed), TEST, FORBIDDEN)
    trained = {tuple(i.words) for i in items if i.split == "train"}
    held_out = {tuple(words_of(text)) for text in (*TEST, *FORBIDDEN)}
    held_out |= {tuple(i.words) for i in items if i.split == "valid" and len(i.words) > 1}
    assert not trained & held_out
    runs = {run for words in trained for run in digit_runs(words)}
    assert not runs & {words for words in held_out if set(words) <= set(DIGITS)}
    assert [i.text for i in items if i.split == "test"] == TEST


def test_what_a_plan_would_say_it_does_not_say_once_it_is_forbidden() -> None:
    said = {" ".join(i.words) for i in domain_plan(SMALL, [], []) if len(i.words) > 1}
    instead = {" ".join(i.words) for i in domain_plan(SMALL, [], sorted(said))}
    assert len(said) > 50 and not said & instead


def test_a_longer_plan_begins_with_the_shorter_one() -> None:
    assert domain_plan(replace(SMALL, items=60), TEST, FORBIDDEN) == domain_plan(SMALL, TEST, FORBIDDEN)[:60]


@pytest.fixture(scope="module")
def plan() -> list[Item]:
    recipe = DomainRecipe(items=480)
    texts = {name: [t.text for t in load_corpus(name).texts] for name in (TEST_LIST, *FORBIDDEN_LISTS)}
    return domain_plan(recipe, texts[TEST_LIST], [t for name in FORBIDDEN_LISTS for t in texts[name]])


@pytest.mark.parametrize("first", [48, 240, 480])
def test_every_prefix_is_shared_evenly_by_the_voices(plan: list[Item], first: int) -> None:
    counts = Counter(item.voice for item in plan[:first] if item.split == "train")
    assert set(counts) == set(DomainRecipe.voices) and max(counts.values()) - min(counts.values()) <= 3


def test_an_early_prefix_holds_every_word_and_every_length(plan: list[Item]) -> None:
    trained = [item.words for item in plan if item.split == "train"]
    assert {word for words in trained for word in words} == set(LEXICON)
    assert {len(words) for words in trained} == set(range(1, 11))


def test_paces_and_pauses_are_all_there_and_the_held_out_texts_are_plain(plan: list[Item]) -> None:
    train = [item for item in plan if item.split == "train"]
    assert {speed_token(item.tempo) for item in train} == {f"[speed_{n}]" for n in (3, 4, 5, 6, 7)}
    assert 0.05 < sum(PAUSE in item.text for item in train) / len(train) < 0.2
    assert all((item.tempo, PAUSE in item.text) == (1.0, False) for item in plan if item.split == "test")


@given(st.integers(0, 2**31))
def test_no_mark_ever_parts_a_number(seed: int) -> None:
    sentence = (("turn", "forty", "two", "degrees", "left"),)
    tokens = written(sentence, random.Random(seed)).rstrip(".").split()
    assert [t for t in tokens if t != PAUSE] == list(sentence[0])
    assert all(b in DIGITS for a, b in pairwise(tokens) if a in TENS)


def test_held_out_texts_differ_from_each_other_and_from_the_taken() -> None:
    first = held_out_texts(30, (3, 4, 5), 1)
    second = held_out_texts(30, (3, 4, 5), 1, first)
    assert len({*first, *second}) == 60
    assert [len(text.split()) for text in first[:3]] == [3, 4, 5]


@pytest.mark.parametrize(("name", "count"), [(TEST_LIST, 200), ("nano-domain-eval", 60)])
def test_the_committed_lists_are_the_grammar_s_and_of_all_lengths(name: str, count: int) -> None:
    texts = [text.text.split() for text in load_corpus(name).texts]
    assert len(texts) == count and {len(words) for words in texts} == set(range(3, 11))
    assert {word for words in texts for word in words} <= set(LEXICON)


def test_the_committed_lists_share_no_sentence() -> None:
    assert not {t.text for t in load_corpus(TEST_LIST).texts} & {
        t.text for t in load_corpus("nano-domain-eval").texts
    }
