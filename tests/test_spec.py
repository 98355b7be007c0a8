"""Recipes, runs and sweeps: what is accepted, what is refused and how it is worded."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from labkit.errors import SpecError
from labkit.spec import (
    STAGES,
    Limits,
    Recipe,
    RunSpec,
    StageChoice,
    check_device,
    default_recipes,
    find_recipe,
    load_recipes,
    load_sweep,
    parse_recipes,
    parse_run,
)

RECIPES = {name: Recipe(name=name) for name in ("torch-fp32", "ort-fp32", "ort-int8-dynamic")}
SWEEP = """\
name: precisions
voice: nano
recipe: [torch-fp32, ort-fp32]
scenario: [replay, single]
threads: [1, 2]
repeats: 5
baseline: torch-fp32
limits: {seconds: 120, memory_gb: 4}
"""


def _sweep_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "sweep.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_lists_are_axes_and_recipes_are_neighbours(tmp_path: Path) -> None:
    runs = load_sweep(_sweep_file(tmp_path, SWEEP)).runs(RECIPES)
    assert len(runs) == 8
    assert [r.recipe.name for r in runs[:2]] == ["torch-fp32", "ort-fp32"]
    assert {(r.scenario, r.threads) for r in runs} == {(s, t) for s in ("replay", "single") for t in (1, 2)}
    assert all(r.limits == Limits(seconds=120, memory_gb=4) for r in runs)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SWEEP.replace("repeats", "repeat"), ["unknown key 'repeat'", "did you mean 'repeats'", "line 6"]),
        (SWEEP.replace("replay", "reply"), ["scenario", "reply"]),
        (SWEEP.replace("[1, 2]", "[]"), ["threads", "at least one"]),
        (SWEEP.replace("[1, 2]", "[1, 1]"), ["threads", "twice"]),
        (SWEEP.replace("[1, 2]", "['1']"), ["threads", "'1'"]),
        (SWEEP.replace("baseline: torch-fp32", "baseline: onnx"), ["baseline", "onnx"]),
        (SWEEP.replace("seconds: 120", "seconds: .nan"), ["seconds"]),
        (SWEEP.replace("seconds: 120", "seconds: -1"), ["seconds", "-1"]),
        (
            SWEEP.replace("seconds: 120", "secnds: 120"),
            ["unknown key 'secnds' in limits", "'seconds'", "line 8"],
        ),
        (SWEEP.replace("[1, 2]", "0"), ["threads", "greater than or equal to 1", "line 5"]),
        (SWEEP.replace("[1, 2]", "100000"), ["threads", "less than or equal to 256"]),
        (SWEEP.replace("repeats: 5", "repeats: 0"), ["repeats", "greater than or equal to 1"]),
        (SWEEP + "texts: 0\n", ["texts", "greater than or equal to 1"]),
        (SWEEP + "max_steps: 5000\n", ["max_steps", "4096"]),
        (SWEEP + "voice: other\n", ["not valid YAML", "'voice' is given twice", "line 9"]),
        (
            SWEEP.replace("[torch-fp32, ort-fp32]", "[{name: torch-fp32}]"),
            ["recipe", "valid string", "line 3"],
        ),
        ("name: [unclosed", ["not valid YAML"]),
        ("- a\n- b\n", ["must be a mapping", "list"]),
        ("", ["must be a mapping"]),
    ],
)
def test_a_wrong_sweep_is_refused_in_words(tmp_path: Path, text: str, words: list[str]) -> None:
    file = _sweep_file(tmp_path, text)
    with pytest.raises(SpecError) as caught:
        load_sweep(file)
    assert str(file) in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_refusal_of_the_whole_says_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    file = _sweep_file(tmp_path, SWEEP.replace("baseline: torch-fp32", "baseline: onnx"))
    with pytest.raises(SpecError) as caught:
        load_sweep(file)
    assert (
        str(caught.value) == f"{file}: baseline 'onnx' is not among the recipes ['torch-fp32', 'ort-fp32']."
    )


def test_a_line_is_named_only_when_it_is_the_only_one_with_that_key() -> None:
    twice = "a: {gpt: {precision: fp32}}\nb: {gpt: {precision: int7}}\n"
    with pytest.raises(SpecError, match="int7") as caught:
        parse_recipes(twice, place="mine.yaml")
    assert "line" not in str(caught.value)


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1"])
def test_devices_that_can_be_meant(device: str) -> None:
    check_device(device)


@pytest.mark.parametrize("device", ["", "tpu", "cuda:", "cuda:x", "CPU", "cpu:0"])
def test_other_devices_are_refused(device: str) -> None:
    with pytest.raises(SpecError, match="known devices: cpu, cuda, cuda:N"):
        check_device(device)


def test_an_unreadable_sweep_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml cannot be read: No such file"):
        load_sweep(tmp_path / "nowhere.yaml")
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8"):
        load_sweep(binary)


def test_an_unknown_recipe_suggests_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean 'ort-int8-dynamic'"):
        find_recipe("ort-int8-dynamik", RECIPES)


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


def test_a_run_refuses_what_json_cannot_say() -> None:
    with pytest.raises(SpecError, match="cell"):
        parse_run({"recipe": {"name": "x"}, "seed": Path("3")}, place="cell")
    with pytest.raises(SpecError, match="seed"):
        parse_run({"recipe": {"name": "x"}, "seed": float("nan")}, place="cell")


def test_equal_work_has_equal_hashes_and_limits_do_not_count() -> None:
    run = RunSpec(recipe=Recipe(name="torch-fp32"))
    assert run.work_hash() == RunSpec(recipe=Recipe(name="torch-fp32")).work_hash()
    assert (
        run.work_hash()
        == run.model_copy(update={"limits": Limits(seconds=1), "keep_audio": True}).work_hash()
    )
    assert run.work_hash() != run.model_copy(update={"seed": 1}).work_hash()


@given(
    threads=st.integers(1, 64), seed=st.integers(0, 2**40), texts=st.none() | st.integers(1, 500),
    speaker=st.none() | st.text(max_size=20),
)  # fmt: skip
def test_a_run_survives_json(threads: int, seed: int, texts: int | None, speaker: str | None) -> None:
    run = RunSpec(recipe=Recipe(name="x"), threads=threads, seed=seed, texts=texts, speaker=speaker)
    again = RunSpec.model_validate_json(run.model_dump_json())
    assert again == run and again.work_hash() == run.work_hash()


def test_specs_are_frozen() -> None:
    with pytest.raises(ValidationError):
        RunSpec(recipe=Recipe(name="x")).seed = 3  # type: ignore[misc]
