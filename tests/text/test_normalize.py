from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.errors import SpecError
from labkit.text.language import detect_language
from labkit.text.normalize import NormalizeOptions, normalize
from labkit.text.numbers import DIGITS, TEENS, TENS
from labkit.text.rules import RULE_NAMES, RULES
from labkit.text.symbols import CONTROL_TOKEN, PROMPT_TOKENS

TOKENS = ("[uv_break]", "[laugh]", "[lbreak]", "[speed_5]", "[oral_2]", "[laugh_0]", "[break_6]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("three one four", "three one four"),
        ("314 apples", "three hundred and fourteen apples"),
        ("It costs $3.50, or 20% off!", "It costs three point five zero dollars, or twenty percent off."),
        ("$1 & €2", "one dollar and two euros"),
        ("1,234,567 and 007", "one million two hundred and thirty four thousand five hundred and sixty seven "
         "and zero zero seven"),
        ("3-5 km/h at 10:30", "three to five kilometers per hour at ten thirty"),
        ("#1 -5 2nd", "number one minus five second"),
        ("v1.2.3", "v one point two point three"),
        ("３．１４ｋｍ", "three point one four kilometers"),
        ("don't ‘quote’ it’s", "don't quote it's"),
        ("twenty-one (really)", "twenty one, really,"),
        ("😀hi\0 there 👍🏽", "hi there"),
        ("one\0two\x1bthree", "one two three"),
        ("in\u200bvisible", "invisible"),
        ("wait... what?!", "wait. what."),
        ("one\ntwo\tthree", "one two three"),
        ("我有3个苹果，花了20元。", "我有三个苹果，花了二十元。"),
        ("温度是36.5℃", "温度是三十六点五摄氏度"),
        ("涨了50%", "涨了百分之五十"),
        ("2024年", "二零二四年"),
        ("“你好”，[uv_break]他说：“真的吗？”[laugh]", "你好，[uv_break]他说，真的吗。[laugh]"),
        ("你 好 吗", "你好吗"),
        ("甲、乙、丙", "甲、乙、丙"),
        ("我有3个 apple and 4 pears", "我有三个 apple and four pears"),
    ],
)  # fmt: skip
def test_texts_are_read_as_people_would(text: str, expected: str) -> None:
    assert normalize(text)[0] == expected


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_unicode_is_accepted_and_normalizing_twice_changes_nothing(text: str) -> None:
    once, report = normalize(text)
    assert normalize(once)[0] == once
    assert report.text == once and report.original == text


PIECES = st.sampled_from(
    [*TOKENS, "one", "two 2", "3.5%", "$7", "你好", "，", "！", "？", "“", "”", "(", ")", "...", "-", "°C", " ", "[",
     "]", "1,234", "10:30", "😀", "\0", "３", "2nd", "3km", "_", "'", "’", "&", "年", "x²", "①", "ﬁ"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join))
@settings(max_examples=400)
def test_control_tokens_are_kept_verbatim_and_in_order(text: str) -> None:
    once, _ = normalize(text)
    assert re.findall(CONTROL_TOKEN, once) == re.findall(CONTROL_TOKEN, text)
    assert normalize(once)[0] == once


@pytest.mark.parametrize("text", ["2nd，年[uv_break]，", "3km，年[uv_break]，"])
def test_a_reading_that_takes_the_first_letters_away_settles(text: str) -> None:
    once, _ = normalize(text)
    assert once.endswith("年[uv_break]，")
    assert normalize(once)[0] == once


@given(
    st.lists(st.sampled_from([*PROMPT_TOKENS, "[St", "ts]", "[spk", "_emb]", "one", " "]), max_size=10).map(
        "".join
    )
)
def test_prompt_tokens_never_survive(text: str) -> None:
    once, _ = normalize(text)
    assert not [token for token in PROMPT_TOKENS if token in once]


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=40))
def test_nothing_but_words_marks_and_apostrophes_is_left(text: str) -> None:
    rest = re.sub(CONTROL_TOKEN, "", normalize(text)[0])
    assert not re.findall(r"[^\w\s',.，。、]", rest)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turn 42 degrees", "turn forty two degrees"),
        ("20% at 7", "twenty percent at seven"),
        ("7-9", "seven to nine"),
        ("call 729", "call seven two nine"),
        ("3.14 and 05", "three one four and zero five"),
        ("the 3rd", "the three"),
    ],
)
def test_a_voice_of_number_words_to_ninety_nine_reads_amounts_that_far(text: str, said: str) -> None:
    read, report = normalize(text, vocabulary=(*DIGITS, *TEENS, *TENS, "turn", "call"))
    assert (read, report.number_reading) == (said, "tens")


def test_a_voice_of_digit_words_hears_digits() -> None:
    text, report = normalize("call 314, then 2.5", vocabulary=frozenset(DIGITS))
    assert text == "call three one four, then two five"
    assert report.number_reading == "digits"


def test_a_voice_that_knows_hundreds_hears_amounts() -> None:
    text, report = normalize("314", vocabulary=frozenset({*DIGITS, "hundred", "and", "fourteen"}))
    assert text == "three hundred and fourteen" and report.number_reading == "amount"


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_each_rule_can_be_switched_off_and_is_reported(rule: str) -> None:
    text = "“３ [Stts](cats)” & 4 \0 😀 dogs!!"
    _, full = normalize(text)
    _, without = normalize(text, NormalizeOptions(off=frozenset({rule})))
    assert rule in full.rules
    assert rule not in without.rules


def test_the_report_tells_the_text_before_and_after_each_rule() -> None:
    text, report = normalize("20%")
    assert report.changes[0].before == "20%" and report.changes[-1].after == text == "twenty percent"


def test_an_unknown_rule_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match=r"'number' is unknown.*numbers"):
        NormalizeOptions(off=frozenset({"number"}))


def test_the_language_can_be_forced() -> None:
    assert normalize("12", NormalizeOptions(language="zh"))[0] == "十二"
    assert normalize("12", NormalizeOptions(language="en"))[0] == "twelve"


def test_language_is_decided_by_letters_not_by_tokens() -> None:
    assert detect_language("[uv_break][laugh] 你好 ok") == "zh"
    assert detect_language("hello 你") == "en"


def test_rules_have_unique_names_and_descriptions() -> None:
    assert len(set(RULE_NAMES)) == len(RULES)
    assert all(rule.description for rule in RULES)
