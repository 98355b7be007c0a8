"""The search with its measurements replaced: what is predicted, what is tried, and what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from labkit.artifacts import check_recipe
from labkit.errors import SpecError, UserError
from labkit.search import Scheme, Search, front_chart, search, searching, trials, write_recipes
from labkit.search.files import check_writable
from labkit.search.searching import layer_costs, words_of
from labkit.search.trials import Trial
from labkit.spec import Recipe, parse_recipes
from labkit.voices import Voice

KL = {8: (0.0001, 0.0003), 4: (0.004, 0.012)}
SIZES = {"fp32": 100, "int8-weight": 40, "int4-weight": 20}


def losses() -> pd.DataFrame:
    return pd.DataFrame(
        {"bits": bits, "kind": "block", "unit": f"layers.{i}", "kl": kl, "mel_db": 10 * kl}
        for bits, kls in KL.items()
        for i, kl in enumerate(kls)
    )


def trial(recipe: Recipe, kl: float) -> Trial:
    """Sizes as real ones add up: equal layers, and 50 MB that do not change."""
    options, precision = recipe.gpt.options, recipe.gpt.precision
    of_layers = [precision] * 2
    for option, wider in (("fp32_layers", "fp32"), ("int8_layers", "int8-weight")):
        for i in filter(None, str(options.get(option, "")).split(",")):
            of_layers[int(i)] = wider
    gpt = sum(SIZES[each] for each in of_layers) * 1_000_000
    decoder = 10 if recipe.decoder.precision == "fp32" else 4
    return Trial(gpt, gpt + (50 + decoder) * 1_000_000, gpt / 200e6, kl, 1.0, 0.0, 0.1)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, blocky_voice: Voice) -> Callable[..., Search]:
    """Search with mixes measured at `worse` times what their layers lose."""

    def run(worse: float = 1.0, **options) -> Search:
        def fake(recipes, recorded, progress):
            answers = {"fp32": trial(trials.exact_recipe(), 0.0)}
            for name, recipe in recipes.items():
                corner = {"int8-weight": 0.0008, "int4-weight": 0.032}.get(name, 0.0)
                mixed = worse * (0.008 if recipe.gpt.options.get("int8_layers") == "1" else 0.0)
                answers[name] = trial(recipe, corner or mixed)
            return answers

        monkeypatch.setattr(searching, "measure_sensitivity", lambda voice, **_: losses())
        monkeypatch.setattr(trials, "try_recipes", fake)
        asked = {"corpus": "english-calibration", "texts": 10, **options}
        return search(blocky_voice, **asked)

    return run


def test_costs_add_up_to_the_corners() -> None:
    corners = {
        "fp32": Trial(200, 300, 1.0, 0.0, 1, 0, 0.0),
        "int8-weight": Trial(80, 180, 0.5, 0.0008, 1, 0, 0.2),
        "int4-weight": Trial(40, 140, 0.4, 0.032, 1, 0, 0.4),
    }
    costs = layer_costs(losses(), corners)
    assert [cost["int4-weight"].size for cost in costs] == [-80, -80]
    assert sum(cost["int4-weight"].kl for cost in costs) == pytest.approx(0.032)
    assert costs[1]["int4-weight"].kl == pytest.approx(3 * costs[0]["int4-weight"].kl)
    assert sum(cost["int8-weight"].mel2 for cost in costs) == pytest.approx(0.04)
    assert sum(cost["int8-weight"].time for cost in costs) == pytest.approx(-0.5e6)
    assert costs[0]["fp32"] == (costs[1]["fp32"]) and costs[0]["fp32"].kl == 0


def test_the_smallest_mix_within_the_budget_is_chosen_and_measured(measured) -> None:
    found = measured(budget=["kl<0.01"])
    assert found.chosen is not None and len(found.tried) == 1
    assert found.chosen.precisions == ("int4-weight", "int8-weight")  # the layer that minds is the wider one
    assert found.chosen.predicted["kl"] == pytest.approx(0.25 * 0.032 + 0.75 * 0.0008)
    assert found.chosen.predicted["size"] == pytest.approx(20 + 40 + 60)
    assert found.chosen.measured.figures()["size"] == pytest.approx(found.chosen.predicted["size"])
    assert [each.predicted["size"] for each in found.front] == sorted(
        each.predicted["size"] for each in found.front
    )


def test_a_mix_that_is_worse_than_predicted_makes_room_for_a_better_one(measured) -> None:
    found = measured(worse=2.0, budget=["kl<0.01"])
    assert [each.precisions for each in found.tried] == [
        ("int4-weight", "int8-weight"),
        ("int8-weight", "int8-weight"),
    ]
    assert found.is_chosen(found.tried[1])


def test_a_budget_that_nothing_meets_finds_nothing(measured) -> None:
    found = measured(budget=["size<70"])
    assert found.chosen is None and found.tried == ()


def test_the_decoder_is_touched_only_when_its_sound_is_limited(measured) -> None:
    def smallest(found: Search) -> str:
        return found.chosen.recipe.decoder.precision

    assert smallest(measured(budget=["kl<0.01"])) == "fp32"
    found = measured(budget=["kl<0.01", "mel<5"])
    assert smallest(found) == "int8-dynamic"
    assert {each.recipe.vocoder.precision for each in found.front} == {"fp32"}


def test_the_file_is_one_of_recipes(measured, tmp_path: Path) -> None:
    found = measured(budget=["kl<0.01"], name="mine")
    names = write_recipes(found, tmp_path / "recipes.yaml", others=1)
    assert names == ["mine", "mine-1"]
    text = (tmp_path / "recipes.yaml").read_text()
    recipes = parse_recipes(text, place="here")
    for recipe in recipes.values():
        check_recipe(recipe)
    assert recipes["mine"].gpt == found.chosen.recipe.gpt and "(measured)" in recipes["mine"].description
    assert "predicted, not measured" in recipes["mine-1"].description
    assert len({recipe.gpt.model_dump_json() for recipe in recipes.values()}) == 2
    assert "never quantized unasked" in text


def test_nothing_found_is_nothing_written(measured, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="was not written"):
        write_recipes(measured(budget=["size<70"]), tmp_path / "recipes.yaml")
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("mine")
    for path, words in (
        ("there.yaml", "exists"), ("recipes.txt", "such a file"), ("no/recipes.yaml", "is no folder")
    ):  # fmt: skip
        with pytest.raises(UserError, match=words):
            check_writable(tmp_path / path)
    with pytest.raises(UserError, match=r"--plot .*\.png or \.svg"):
        check_writable(None, tmp_path / "front.gif")
    check_writable(tmp_path / "new.yaml", tmp_path / "front.png")


def test_the_chart_shows_what_was_predicted_and_what_was_found(measured, tmp_path: Path) -> None:
    found = measured(budget=["kl<0.01"])
    (axes,) = front_chart(found).axes
    predicted, corners, made = (points.get_offsets() for points in axes.collections)
    exact = [each for each in found.front if each.predicted["kl"] == 0]
    assert len(predicted) == len(found.front) - len(exact) and len(corners) == 2 and len(made) == 1
    assert list(made[0]) == pytest.approx([120, found.chosen.measured.kl])
    front_chart(found).savefig(tmp_path / "front.png")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minimize": "speed"}, "minimize: figure 'speed'"),
        ({"scheme": Scheme(64)}, "block 64"),
        ({"budget": ["kl"]}, "budget"),
    ],
)
def test_wrong_requests_are_named_before_any_work(blocky_voice: Voice, options: dict, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        search(blocky_voice, **{"corpus": "english-calibration", **options})


def test_mixes_in_words() -> None:
    assert words_of(["fp32"] * 3) == "every layer in fp32"
    mix = ["fp32", "int8-weight", "int4-weight", "int4-weight"]
    assert words_of(mix) == "fp32: 0; int8-weight: 1; int4-weight: the other 2"
