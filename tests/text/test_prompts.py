from __future__ import annotations

import pytest

from labkit.text.prompts import code_prompt, is_style, refine_prompt


def test_the_code_prompt_is_chattts_own() -> None:
    assert code_prompt("hello", speaker=True) == "[Stts][spk_emb][speed_5]hello[Ptts]"
    assert code_prompt("hello", speaker=False) == "[Stts][empty_spk][speed_5]hello[Ptts]"
    assert code_prompt(" hello ", speaker=True, style="") == "[Stts][spk_emb]hello[Ptts]"
    assert (
        code_prompt("hello", speaker=True, style="[speed_2][oral_1]", sample_text="sample said")
        == "[Stts][spk_emb]sample said[speed_2][oral_1]hello[Ptts]"
    )


def test_prompt_markers_in_the_text_are_removed() -> None:
    assert (
        code_prompt("a[Stts]b[spk_emb]c[empty_spk]", speaker=False) == "[Stts][empty_spk][speed_5]abc[Ptts]"
    )


def test_the_refine_prompt_is_chattts_own() -> None:
    assert refine_prompt("hello", "[oral_2]") == "[Sbreak]hello[Pbreak][oral_2]"
    assert refine_prompt("hello") == "[Sbreak]hello[Pbreak]"


@pytest.mark.parametrize(
    ("style", "good"),
    [("", True), ("[speed_5]", True), ("[oral_2][laugh_0]", True), ("fast", False), ("[speed_10]", False)],
)
def test_a_style_is_made_of_style_tokens(style: str, good: bool) -> None:
    assert is_style(style) is good
