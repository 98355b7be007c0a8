from __future__ import annotations

import pytest

from labkit.errors import SpecError
from labkit.quantize.layers import LayerList, layer_of, layers_of


@pytest.mark.parametrize(
    ("value", "form"), [("", ""), (4, "4"), ("4, 0", "0,4"), ("11,2,2", "2,11"), ("007", "7")]
)
def test_equal_choices_have_one_form(value, form: str) -> None:
    assert LayerList().canonical("fp32_layers", value) == form


@pytest.mark.parametrize("value", [True, 1.0, "-1", "0-3", "0,,1", "²", "all"])
def test_what_names_no_layers_is_refused(value) -> None:
    with pytest.raises(SpecError, match="fp32_layers"):
        LayerList().canonical("fp32_layers", value)


def test_layers_must_be_there() -> None:
    assert layers_of("fp32_layers", "3,0", 4) == {0, 3}
    with pytest.raises(SpecError, match="no layer 4"):
        layers_of("fp32_layers", "4", 4)


def test_products_know_their_layer() -> None:
    assert layer_of("11.gate_up.MatMul") == 11
    assert layer_of("logits.MatMul") is None
