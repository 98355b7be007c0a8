from __future__ import annotations

import pytest

from labkit.artifacts.plans import check_recipe, plan_stage
from labkit.errors import SpecError
from labkit.search.mixing import Scheme, mixed_recipe, require_scheme
from labkit.voices import Voice


@pytest.mark.parametrize(
    ("layers", "precision", "options"),
    [
        ("fp32 fp32", "fp32", {}),
        ("int8-weight fp32", "int8-weight", {"block_size": 32, "fp32_layers": "1"}),
        ("int8-weight int8-weight", "int8-weight", {"block_size": 32}),
        ("int4-weight int8-weight", "int4-weight", {"block_size": 32, "int8_layers": "1"}),
        ("fp32 int4-weight", "int4-weight", {"block_size": 32, "fp32_layers": "0"}),
    ],
)
def test_a_mix_is_its_narrowest_precision_with_exceptions(
    blocky_voice: Voice, layers: str, precision: str, options: dict
) -> None:
    recipe = mixed_recipe("mix", "", layers.split(), "int8-dynamic", Scheme(32))
    assert recipe.gpt.precision == precision and recipe.gpt.options == options
    assert recipe.decoder.precision == "int8-dynamic" and recipe.vocoder.precision == "fp32"
    check_recipe(recipe)
    plan_stage("gpt", recipe.gpt, blocky_voice, "hidden")


def test_the_algorithm_goes_to_the_layers_that_know_it() -> None:
    def options(layers: str, algorithm: str) -> dict:
        return mixed_recipe("mix", "", layers.split(), "fp32", Scheme(32, algorithm)).gpt.options

    assert options("int4-weight fp32", "hqq")["algorithm"] == "hqq"
    assert "algorithm" not in options("int8-weight fp32", "hqq")
    assert options("int8-weight fp32", "gptq")["algorithm"] == "gptq"


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        (Scheme(64), r"block 64 does not divide .*\(64 and 96\); 32 does"),
        (Scheme(48), r"'block_size' cannot be 48; it may be 32"),
        (Scheme(32, "guess"), "'algorithm' cannot be 'guess'; it may be 'rtn'"),
    ],
)
def test_schemes_that_cannot_be_are_refused(blocky_voice: Voice, scheme: Scheme, words: str) -> None:
    require_scheme(blocky_voice, Scheme())
    with pytest.raises(SpecError, match=words):
        require_scheme(blocky_voice, scheme)
