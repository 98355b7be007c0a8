"""Lists that may be calibrated on, and those that are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labkit.calibration import (
    MAX_SENTENCES,
    MIN_SENTENCES,
    calibration_texts,
    default_corpus,
    judging_set,
)
from labkit.errors import CalibrationError, SpecError
from labkit.text.corpus import load_corpus
from labkit.text.numbers import DIGITS
from labkit.voices import Voice


def own_list(folder: Path, *lines: str) -> str:
    path = folder / "mine.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def many(count: int) -> list[str]:
    return [f"sentence number {i} of my own" for i in range(count)]


def test_a_part_of_a_list_is_spread_over_all_of_it() -> None:
    everything = [text.id for text in load_corpus("english-calibration").texts]
    chosen = [everything.index(text.id) for text in calibration_texts("english-calibration", 60)]
    assert chosen == list(range(0, 120, 2))


def test_joined_lists_share_the_sentences() -> None:
    texts = calibration_texts("english-calibration+mandarin-calibration", 100)
    assert sum(text.id.startswith("english") for text in texts) == 50
    assert len({text.id for text in texts}) == 100


def test_a_file_of_ones_own_is_read_without_blanks_remarks_and_repetitions(tmp_path: Path) -> None:
    name = own_list(tmp_path, "# mine", "", *many(50), many(1)[0])
    assert [text.text for text in calibration_texts(name, 50)] == many(50)


def test_a_plus_in_the_path_of_a_file_joins_nothing(tmp_path: Path) -> None:
    (folder := tmp_path / "a+b + c").mkdir()
    mine = own_list(folder, *many(50))
    assert [text.text for text in calibration_texts(mine, 50)] == many(50)
    (other := folder / "more+.txt").write_text("\n".join(f"another {i}" for i in range(50)), encoding="utf-8")
    texts = calibration_texts(f"nano-calibration + {mine}+{other}", 200)
    assert {text.id.rsplit("-", 1)[0] for text in texts} == {"nano-calibration", "mine", "more+"}
    with pytest.raises(SpecError, match="'nano-calibratoin' is unknown \\(did you mean"):
        calibration_texts(f"nano-calibratoin+{mine}", 50)


@pytest.mark.parametrize("sentences", [MIN_SENTENCES - 1, MAX_SENTENCES + 1])
def test_too_few_or_too_many_sentences_are_refused(sentences: int) -> None:
    with pytest.raises(CalibrationError, match=rf"{sentences} sentences; ask for 50 to 200"):
        calibration_texts("nano-calibration", sentences)


def test_a_short_list_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"mine\.txt' has 51 texts, but 60 were asked for"):
        calibration_texts(own_list(tmp_path, *many(51)), 60)


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"mine\.txt is empty"):
        calibration_texts(own_list(tmp_path, "# nothing", ""), 50)


def test_a_list_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_bytes("一二三\n".encode("gb18030"))
    with pytest.raises(CalibrationError, match=r"mine\.txt: byte \d+ is not UTF-8"):
        calibration_texts(str(tmp_path / "mine.txt"), 50)


def test_missing_lists_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match=r"none\.txt cannot be read: No such file"):
        calibration_texts(str(tmp_path / "none.txt"), 50)
    with pytest.raises(SpecError, match="did you mean 'nano-calibration'"):
        calibration_texts("nano-calibratoin", 50)


def test_an_evaluation_list_is_refused_with_the_lists_that_will_do() -> None:
    with pytest.raises(CalibrationError, match=r"'nano-heldout' is an evaluation list.*nano-calibration"):
        calibration_texts("nano-heldout", 50)


def test_a_text_of_an_evaluation_list_is_found_however_it_is_written(tmp_path: Path) -> None:
    taken = load_corpus("nano-eval").texts[0].text.upper() + "!"
    with pytest.raises(CalibrationError, match=rf"'{taken}' is also in the evaluation list 'nano-"):
        calibration_texts(own_list(tmp_path, *many(50), taken), 50)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (None, "english-calibration+mandarin-calibration"),
        (DIGITS, "nano-calibration"),
        ((*DIGITS, "turn", "left"), "nano-domain-calibration"),
    ],
)
def test_the_default_list_fits_the_voice(tiny_voice: Voice, words, expected: str) -> None:
    voice = replace(tiny_voice, card=replace(tiny_voice.card, domain_words=words and tuple(words)))
    assert default_corpus(voice) == expected
    assert len(calibration_texts(expected, 100)) == 100


def test_what_was_calibrated_is_judged_on_other_sentences(tiny_voice: Voice) -> None:
    for words in (None, DIGITS, (*DIGITS, "open")):
        voice = replace(tiny_voice, card=replace(tiny_voice.card, domain_words=words))
        judged = {text.text for text in judging_set(voice).texts}
        calibrated = {text.text for text in calibration_texts(default_corpus(voice), 100)}
        assert len(judged) == 40 and not judged & calibrated
    assert len(judging_set(tiny_voice, "nano-smoke").texts) == 4


def test_a_calibration_list_is_none_to_judge_by(tiny_voice: Voice) -> None:
    with pytest.raises(CalibrationError, match="'english-calibration' is a calibration list"):
        judging_set(tiny_voice, "english-evaluation+english-calibration")
