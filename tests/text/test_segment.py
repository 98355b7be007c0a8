from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.text.segment import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ("One.", "Two!", "Three?")),
        ("It costs 3.50 today. Good.", ("It costs 3.50 today.", "Good.")),
        ("Dr. Smith met Mr. Lee. They left.", ("Dr. Smith met Mr. Lee.", "They left.")),
        ("J. S. Bach wrote it.", ("J. S. Bach wrote it.",)),
        ("今天很好。明天呢？走吧！", ("今天很好。", "明天呢？", "走吧！")),
        ("“你好。”他说。", ("“你好。”", "他说。")),
        ("Stop.[uv_break] Go on.", ("Stop.[uv_break]", "Go on.")),
        ("first line\nsecond line", ("first line", "second line")),
        ("Wait... what?", ("Wait...", "what?")),
        ("  ", ()),
    ],
)
def test_sentences_end_where_people_end_them(text: str, expected: tuple[str, ...]) -> None:
    assert sentences(text) == expected


def test_long_sentences_are_cut_at_pauses_then_at_blanks() -> None:
    assert sentences("one two, three four, five six", 16) == ("one two,", "three four,", "five six")
    assert sentences("one two three four", 9) == ("one two", "three", "four")
    assert sentences("一二三四五六七八", 3) == ("一二三", "四五六", "七八")


@given(
    st.lists(
        st.sampled_from(
            ["one", "two", ",", ".", "。", "，", " ", "\n", "你好", "3.5", "Mr.", "[laugh]", "?"]
        ),
        max_size=40,
    )
)
def test_nothing_but_blanks_is_lost(pieces: list[str]) -> None:
    text = "".join(pieces)
    for limit in (5, 20, 200):
        assert re.sub(r"\s", "", "".join(sentences(text, limit))) == re.sub(r"\s", "", text)


@given(st.text(alphabet="ab .,\n你", max_size=120), st.integers(1, 40))
def test_segments_keep_the_limit_unless_one_word_is_longer(text: str, limit: int) -> None:
    for segment in sentences(text, limit):
        assert len(segment) <= limit or not re.search(r"\s|[,，]\S", segment[:limit])


@given(st.text(max_size=80))
def test_any_unicode_splits(text: str) -> None:
    assert all(segment == segment.strip() and segment for segment in sentences(text, 10))
