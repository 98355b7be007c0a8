"""What a gate may ask for, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import SpecError
from labkit.gate.spec import GateSpec, load_gate, parse_tiers
from labkit.spec import Recipe

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "tiers"), [("0-2", (0, 1, 2)), ("1,3", (1, 3)), ("2", (2,)), ("0-1, 3", (0, 1, 3))]
)
def test_tiers_are_read(text: str, tiers: tuple[int, ...]) -> None:
    assert parse_tiers(text) == tiers


@pytest.mark.parametrize("text", ["", "4", "2-1", "a", "0-", "1;2"])
def test_tiers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(SpecError, match="write 0-2"):
        parse_tiers(text)


def test_the_reference_always_speaks_first() -> None:
    assert GateSpec(name="g", recipe=("ort-fp32",)).recipe == ("torch-fp32", "ort-fp32")
    assert GateSpec(name="g", recipe=("ort-fp32", "torch-fp32")).recipe == ("torch-fp32", "ort-fp32")


@pytest.mark.parametrize("name", ["gate.yaml"])
def test_the_committed_gates_are_whole(name: str) -> None:
    spec = load_gate(ROOT / "sweeps" / name)
    assert spec.texts is None or spec.texts >= 30  # tier 3 decides nothing on fewer
    assert spec.speed.base_processes >= 10 and spec.speed.head_processes >= 5


def test_a_wrong_key_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text("name: g\nrecipe: ort-fp32\nspeed:\n  head_proceses: 3\n")
    with pytest.raises(SpecError, match=r"line 4.*did you mean 'head_processes'"):
        load_gate(file)


@pytest.mark.parametrize("wrong", ["tiers: [4]", "seeds: [1, 1]", "recipe: []", "texts: 0"])
def test_impossible_values_are_refused(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "gate.yaml"
    lines = {"name": "name: g", "recipe": "recipe: ort-fp32"} | {wrong.split(":")[0]: wrong}
    file.write_text("\n".join(lines.values()))
    with pytest.raises(SpecError, match=wrong.split(":")[0]):
        load_gate(file)


def test_a_recipe_s_part_is_a_run_on_the_reference_s_tokens() -> None:
    spec = GateSpec(name="g", recipe=("ort-fp32",), texts=7, threads=2).run_spec(Recipe(name="r"), texts=3)
    assert (spec.scenario, spec.texts, spec.threads, spec.recipe.name) == ("replay", 3, 2, "r")
