from __future__ import annotations

import pytest

from labkit.artifacts.plans import check_recipe, plan_stage
from labkit.errors import SpecError
from labkit.search.mixing import mixed_recipe, require_block
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
    recipe = mixed_recipe("mix", "", layers.split(), "int8-dynamic", 32)
    assert recipe.gpt.precision == precision and recipe.gpt.options == options
    assert recipe.decoder.precision == "int8-dynamic" and recipe.vocoder.precision == "fp32"
    check_recipe(recipe)
    plan_stage("gpt", recipe.gpt, blocky_voice, "hidden")


def test_blocks_must_divide_the_voice(blocky_voice: Voice, tiny_voice: Voice) -> None:
    require_block(blocky_voice, 32)
    with pytest.raises(SpecError, match=r"block 64.*\(64 and 96, 32 divides both\); choose 32"):
        require_block(blocky_voice, 64)
    with pytest.raises(SpecError, match="this voice has none that fits"):
        require_block(tiny_voice, 32)
    with pytest.raises(SpecError, match="block 16: a block is 32, 64, 128 inputs"):
        require_block(blocky_voice, 16)
