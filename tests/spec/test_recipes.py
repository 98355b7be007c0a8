"""Recipes: the shipped ones, a user's own, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import SpecError
from labkit.spec import STAGES, Recipe, StageChoice, default_recipes, find_recipe, load_recipes, parse_recipes


def test_an_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'ort-int8-dynamic'"):
        find_recipe("ort-int8-dynamik", {"ort-int8-dynamic": Recipe(name="ort-int8-dynamic")})


def test_the_shipped_recipes_are_complete() -> None:
    recipes = default_recipes()
    assert {"torch-fp32", "torch-bf16", "ort-fp32", "ort-int8-dynamic", "upstream"} <= set(recipes)
    assert set(recipes["ort-fp32"].choices()) == set(STAGES)
    assert recipes["upstream"].choices() == {}


def test_own_recipes_replace_shipped_ones(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("torch-fp32: {vocoder: {precision: bf16}}\nmine: {gpt: {engine: ort-cpu}}\n")
    recipes = load_recipes(file)
    assert recipes["torch-fp32"].vocoder.precision == "bf16"
    assert recipes["mine"].gpt == StageChoice(engine="ort-cpu")
    assert "upstream" in recipes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {gptt: {engine: torch}}", ["unknown key 'gptt'", "'gpt'"]),
        ("a: {name: b}", ["'a'", "leave out the key 'name'"]),
        ("a: {gpt: {engin: torch}}", ["unknown key 'engin'", "'engine'"]),
        ("a: {gpt: {precision: int7}}", ["gpt.precision", "int7"]),
        ("a: {pipeline: upstream, gpt: {engine: torch}}", ["pipeline", "keep one"]),
        ("'a b': {}", ["name", "a b"]),
        ("a: torch", ["'a'", "must be a mapping", "str"]),
        ("1: {}", ["name", "valid string"]),
        ("a: {}\na: {pipeline: upstream}", ["'a' is given twice"]),
    ],
)
def test_a_wrong_recipe_is_refused_in_words(text: str, words: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_recipes(text, place="mine.yaml")
    for word in ["mine.yaml", *words]:
        assert word in str(caught.value)


def test_a_line_is_named_only_when_it_is_the_only_one_with_that_key() -> None:
    twice = "a: {gpt: {precision: fp32}}\nb: {gpt: {precision: int7}}\n"
    with pytest.raises(SpecError, match="int7") as caught:
        parse_recipes(twice, place="mine.yaml")
    assert "line" not in str(caught.value)
