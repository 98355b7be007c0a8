from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
import yaml

from labkit.errors import SpecError
from labkit.text.corpus import corpus_folder, known_corpora, load_corpus
from labkit.text.normalize import normalize
from labkit.text.numbers import DIGITS


def _write(folder: Path, content: bytes, digest: str | None = None) -> None:
    (folder / "mine.txt").write_bytes(content)
    entry = {
        "language": "en",
        "domain": "open",
        "split": "evaluation",
        "sha256": digest or hashlib.sha256(content).hexdigest(),
    }
    (folder / "manifest.yaml").write_text(yaml.safe_dump({"mine": entry}))


@pytest.fixture
def calib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_CALIB", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", known_corpora())
def test_every_committed_corpus_is_what_the_manifest_says(name: str) -> None:
    corpus = load_corpus(name)
    assert (
        len({text.id for text in corpus.texts})
        == len({text.text for text in corpus.texts})
        == len(corpus.texts)
    )
    assert corpus.language in ("en", "zh") and corpus.split in ("evaluation", "calibration")


def test_every_text_file_is_in_the_manifest() -> None:
    assert {path.stem for path in corpus_folder().glob("*.txt")} == set(known_corpora())


@pytest.mark.parametrize(("name", "count"), [("nano-smoke", 4), ("nano-eval", 24), ("nano-heldout", 80)])
def test_digit_corpora_hold_digit_words_only(name: str, count: int) -> None:
    texts = load_corpus(name).texts
    assert len(texts) == count
    for text in texts:
        assert 2 <= len(text.text.split()) <= 6 and set(text.text.split()) <= set(DIGITS)


def test_the_heldout_strings_are_not_those_of_the_evaluation() -> None:
    evaluation = {text.text for text in load_corpus("nano-eval").texts}
    assert not evaluation & {text.text for text in load_corpus("nano-heldout").texts}
    assert {text.text for text in load_corpus("nano-smoke").texts} <= evaluation


@pytest.mark.parametrize(
    ("name", "letters"), [("english-short", r"[A-Za-z ,.?]+"), ("mandarin-short", r"[一-鿿，。？]+")]
)
def test_sentences_are_in_their_language_and_need_little_normalization(name: str, letters: str) -> None:
    corpus = load_corpus(name)
    assert len(corpus.texts) == 20
    for text in corpus.texts:
        assert re.fullmatch(letters, text.text)
        assert normalize(text.text)[1].language == corpus.language


def test_an_unknown_corpus_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SpecError, match=r"'nano-evil' is unknown \(did you mean 'nano-eval'\?\); .*nano-heldout"
    ):
        load_corpus("nano-evil")


def test_blank_lines_and_remarks_are_no_texts(calib: Path) -> None:
    _write(calib, "# about\none\n\n two \n三\n".encode())
    corpus = load_corpus("mine")
    assert [(t.id, t.text) for t in corpus.texts] == [
        ("mine-01", "one"),
        ("mine-02", "two"),
        ("mine-03", "三"),
    ]


def test_line_ends_of_a_checkout_do_not_change_the_hash(calib: Path) -> None:
    _write(calib, b"one\ntwo\n")
    plain = load_corpus("mine").content_hash
    (calib / "mine.txt").write_bytes(b"one\r\ntwo\r\n")
    assert load_corpus("mine").content_hash == plain


def test_a_changed_list_is_refused(calib: Path) -> None:
    _write(calib, b"one\n", digest="0" * 64)
    with pytest.raises(SpecError, match=r"mine\.txt has the hash .*Restore the file"):
        load_corpus("mine")


def test_a_missing_or_unreadable_list_is_named(calib: Path) -> None:
    _write(calib, b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"mine\.txt cannot be read as UTF-8"):
        load_corpus("mine")
    (calib / "mine.txt").unlink()
    with pytest.raises(SpecError, match=r"mine\.txt cannot be read"):
        load_corpus("mine")


def test_a_manifest_with_a_missing_key_is_named(calib: Path) -> None:
    (calib / "manifest.yaml").write_text("mine: {language: en, domain: open, split: evaluation}\n")
    with pytest.raises(SpecError, match="'mine' lacks sha256"):
        load_corpus("mine")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"- mine\n", "must be a mapping"),
        (b"mine: yes\n", "'mine' lacks language"),
        (b"mine: {}\nmine: {}\n", "'mine' is given twice"),
        (b"\xff\xfe", "cannot be read as UTF-8"),
    ],
)
def test_a_manifest_that_is_none_is_named(calib: Path, content: bytes, problem: str) -> None:
    (calib / "manifest.yaml").write_bytes(content)
    with pytest.raises(SpecError, match=problem):
        load_corpus("mine")


def test_a_folder_without_a_manifest_names_the_variable(calib: Path) -> None:
    with pytest.raises(SpecError, match="LABKIT_CALIB"):
        load_corpus("mine")
