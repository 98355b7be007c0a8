"""The committed lists of sentences: enough of them, in their language and domains, and no text in both splits."""

from __future__ import annotations

import re

import pytest

from labkit.text.corpus import corpus_folder, known_corpora, load_corpus
from labkit.text.language import TOKEN
from labkit.text.normalize import normalize

DOMAINS = ("announcements", "customer service", "medicine", "news", "numbers and dates", "dialogue")
COUNTS = {"calibration": 120, "evaluation": 80}
LANGUAGES = {"english": "en", "mandarin": "zh"}
LISTS = [(language, split) for language in LANGUAGES for split in COUNTS]
each_list = pytest.mark.parametrize(("language", "split"), LISTS)


def sections(name: str) -> dict[str, list[str]]:
    """Texts of a list by the heading above them."""
    found: dict[str, list[str]] = {}
    for line in (corpus_folder() / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            texts = found.setdefault(line[2:], [])
        else:
            texts.append(line)
    return found


@each_list
def test_every_domain_is_well_represented_in_both_splits(language: str, split: str) -> None:
    found = sections(f"{language}-{split}")
    assert tuple(found) == DOMAINS
    assert sum(map(len, found.values())) == COUNTS[split]
    assert min(map(len, found.values())) >= (20 if split == "calibration" else 13)


@each_list
def test_sentences_are_in_the_language_that_the_manifest_names(language: str, split: str) -> None:
    corpus = load_corpus(f"{language}-{split}")
    assert (corpus.language, corpus.split) == (LANGUAGES[language], split)
    for text in corpus.texts:
        assert normalize(text.text)[1].language == corpus.language, text


@each_list
def test_domains_hold_what_they_are_for(language: str, split: str) -> None:
    found = sections(f"{language}-{split}")
    assert all(re.search(r"\d|hundred", text) for text in found["numbers and dates"])
    tokens = [TOKEN.findall(text) for text in found["dialogue"]]
    assert sum(bool(each) for each in tokens) > len(tokens) * 0.8
    assert {"[uv_break]", "[laugh]"} == {token for each in tokens for token in each}


def test_no_text_is_in_both_splits_however_it_is_written() -> None:
    splits: dict[str, set[str]] = {"calibration": set(), "evaluation": set()}
    for name in known_corpora():
        corpus = load_corpus(name)
        splits[corpus.split] |= {normalize(text.text)[0].lower() for text in corpus.texts}
    assert len(splits["calibration"]) == 460
    assert not splits["calibration"] & splits["evaluation"]
