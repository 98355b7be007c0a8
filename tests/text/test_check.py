from __future__ import annotations

import pytest

from labkit.errors import TextError
from labkit.text.check import (
    MAX_CHARACTERS,
    DomainWarning,
    check_domain,
    check_length,
    check_normalized,
    check_raw,
)
from labkit.text.normalize import normalize


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_empty_text_is_refused(text: str) -> None:
    with pytest.raises(TextError, match="is empty"):
        check_raw(text)


def test_a_text_of_20_000_characters_is_refused_with_its_length_the_limit_and_the_way_out() -> None:
    with pytest.raises(TextError, match=rf"20000 characters.*at most {MAX_CHARACTERS}.*[Ss]plit"):
        check_raw("a" * 20_000)


def test_who_types_commands_is_told_what_to_type() -> None:
    with pytest.raises(TextError, match="labkit say"):
        check_raw("a" * 20_000)


@pytest.mark.parametrize(
    ("token", "meant"),
    [
        ("laugh_3", "laugh_2"),
        ("break_8", "break_7"),
        ("speed_10", "speed_1"),
        ("uvbreak", "uv_break"),
        ("Laugh", "laugh"),
        ("laughter", "laugh"),
    ],
)
def test_a_misspelt_control_token_is_refused_with_the_nearest_ones(token: str, meant: str) -> None:
    with pytest.raises(TextError, match=rf"\[{token}\] is no control token.*\[{meant}\]"):
        check_raw(f"three [{token}] one")


@pytest.mark.parametrize(
    "token", ["laugh_2", "speed_9", "uv_break", "Stts", "sic", "three", "my_name", "outbreak"]
)
def test_control_tokens_and_words_in_brackets_pass(token: str) -> None:
    check_raw(f"three [{token}] one")


def test_the_limit_itself_is_accepted() -> None:
    check_raw("a" * MAX_CHARACTERS)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("?!...", "punctuation"),
        ("😀👍", "punctuation"),
        ("[uv_break] [laugh]", "control tokens"),
        ("[Stts]", ""),
    ],
)
def test_text_without_a_word_is_refused(text: str, only: str) -> None:
    with pytest.raises(TextError, match=f"only .*{only}"):
        check_normalized(text, normalize(text)[0])


@pytest.mark.parametrize("text", ["one", "你", "7", "[laugh] a"])
def test_one_word_is_enough(text: str) -> None:
    check_normalized(text, normalize(text)[0])


def test_unknown_words_are_named_in_a_warning() -> None:
    with pytest.warns(DomainWarning, match="'nano' was not trained on 'apples'"):
        check_domain("three apples", ["apples"], voice="nano", closed=True)


def test_a_text_of_unknown_words_only_is_refused() -> None:
    with pytest.raises(TextError, match=r"knows no word.*'red', 'apples'"):
        check_domain("Red apples.", ["red", "apples"], voice="nano", closed=True)


def test_an_open_vocabulary_is_never_refused() -> None:
    with pytest.warns(DomainWarning):
        check_domain("þorn", ["þorn"], voice="chattts", closed=False)


def test_known_words_pass_silently(recwarn: pytest.WarningsRecorder) -> None:
    check_domain("three one four", [], voice="nano", closed=True)
    assert not recwarn.list


def test_a_prompt_must_leave_room_for_speech() -> None:
    check_length("x", tokens=500, positions=1024, room=64)
    with pytest.raises(TextError, match=r"makes 1000 tokens.*1024 positions.*split"):
        check_length("x", tokens=1000, positions=1024, room=64)
