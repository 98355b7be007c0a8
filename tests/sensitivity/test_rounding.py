"""Rounding of weights: what is kept, what is lost, and which weights go together."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from labkit.errors import SpecError
from labkit.model.checkpoint import load_decoder, load_gpt, load_vocoder
from labkit.model.rounding import Unit, round_weight, units_of
from labkit.sensitivity.rounding import count, rounded
from labkit.voices import Voice


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 999), st.integers(2, 8), st.sampled_from([None, 4, 8]))
def test_each_value_moves_by_at_most_half_a_step_of_its_group(
    seed: int, bits: int, block: int | None
) -> None:
    weight = torch.from_numpy(np.random.RandomState(seed).randn(5, 16).astype(np.float32))
    new = round_weight(weight, bits, block)
    groups = weight.view(5, -1, block or 16)
    step = groups.abs().amax(-1, keepdim=True) / (2 ** (bits - 1) - 1)
    assert ((new.view_as(groups) - groups).abs() <= step * 0.5001).all()
    assert all(
        len(group.unique()) <= 2**bits - 1 for group in (new.view_as(groups) / step).round().flatten(0, 1)
    )
    torch.testing.assert_close(round_weight(new, bits, block), new)


def test_convolutions_and_empty_channels_are_rounded_too() -> None:
    weight = torch.randn(3, 4, 7)
    weight[1] = 0
    new = round_weight(weight, 8, None)
    assert new.shape == weight.shape and (new[1] == 0).all() and torch.isfinite(new).all()


def test_smaller_blocks_lose_less() -> None:
    weight = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))
    loss = [float((round_weight(weight, 4, block) - weight).square().mean()) for block in (None, 64, 16)]
    assert loss == sorted(loss, reverse=True) and loss[-1] < 0.6 * loss[0]


def test_a_block_that_does_not_divide_is_refused_with_one_that_does() -> None:
    with pytest.raises(
        SpecError, match=r"block size 32 does not divide the 48 inputs of layers\.0\.qkv; 16 does"
    ):
        round_weight(torch.ones(2, 48), 4, 32, "layers.0.qkv")


def test_one_bit_is_refused() -> None:
    with pytest.raises(SpecError, match="1 bits"):
        round_weight(torch.ones(2, 4), 1, None)


def test_signal_to_noise_is_that_of_the_unit_and_weights_come_back(tiny_voice: Voice) -> None:
    gpt = load_gpt(tiny_voice.folder)
    before = gpt.layers[0].qkv.weight
    values = before.clone()
    unit = Unit("qkv", "operator", ("layers.0.qkv", "layers.1.qkv"))
    with pytest.raises(ZeroDivisionError), rounded(gpt, unit, 4, None) as sqnr:
        new = gpt.layers[0].qkv.weight
        assert not torch.equal(new, values)
        assert 15 < sqnr < 22  # about 6 dB a bit, less what the largest value takes
        raise ZeroDivisionError
    assert gpt.layers[0].qkv.weight is before and torch.equal(before, values)


def test_weights_that_need_no_rounding_have_no_noise() -> None:
    network = nn.Sequential(nn.Linear(4, 2, bias=False))
    nn.init.constant_(network[0].weight, 0.5)
    with rounded(network, Unit("0", "edge", ("0",)), 2, None) as sqnr:
        assert sqnr == math.inf


@pytest.mark.parametrize(
    ("load", "blocks", "operators", "edges"),
    [
        (load_gpt, 2, {"qkv", "out", "gate_up", "down"}, {"code_head", "text_head"}),
        (
            load_decoder,
            2,
            {"dwconv", "pwconv1", "pwconv2"},
            {"decoder.conv_in", "decoder.conv_out", "out_conv"},
        ),
        (load_vocoder, 2, {"dwconv", "pwconv1", "pwconv2"}, {"embed", "out"}),
    ],
)
def test_blocks_and_edges_hold_every_product_once(tiny_voice: Voice, load, blocks, operators, edges) -> None:
    network = load(tiny_voice.folder)
    units = units_of(network)
    by_kind = {
        kind: [unit for unit in units if unit.kind == kind] for kind in ("block", "operator", "edge", "all")
    }
    assert len(by_kind["block"]) == blocks
    assert {unit.name for unit in by_kind["operator"]} == operators
    assert {unit.name for unit in by_kind["edge"]} == edges
    products = [n for n, m in network.named_modules() if isinstance(m, nn.Linear | nn.Conv1d)]
    covered = [name for kind in ("block", "edge") for unit in by_kind[kind] for name in unit.modules]
    assert sorted(covered) == sorted(products)
    inside = sum(count(network, unit) for unit in by_kind["block"])
    assert (
        inside
        == sum(count(network, unit) for unit in by_kind["operator"])
        == count(network, by_kind["all"][0])
    )
