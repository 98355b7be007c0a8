"""Sweeps: what a grid expands to, and how a wrong one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import SpecError
from labkit.spec import Limits, Recipe, load_sweep

RECIPES = {name: Recipe(name=name) for name in ("torch-fp32", "ort-fp32")}
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
        (
            SWEEP.replace("name: precisions", "name: ../my sweep"),
            ["line 1: name: a name becomes a file name: letters, digits", "'../my sweep'"],
        ),
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


def test_an_unreadable_sweep_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml cannot be read: No such file"):
        load_sweep(tmp_path / "nowhere.yaml")
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="UTF-8"):
        load_sweep(binary)
