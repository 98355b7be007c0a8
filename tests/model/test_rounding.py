"""Damaging a network on purpose; rounding itself is tested with the sensitivities that it was made for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labkit.errors import SpecError
from labkit.model.checkpoint import load_gpt
from labkit.model.rounding import round_blocks, units_of
from labkit.voices import Voice


def _weights(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in network.named_parameters()}


def test_one_block_is_rounded_and_nothing_else(tiny_voice: Voice) -> None:
    gpt = load_gpt(tiny_voice.folder)
    before = _weights(gpt)
    round_blocks(gpt, "1", 3)
    changed = {name for name, weight in _weights(gpt).items() if not torch.equal(weight, before[name])}
    assert changed and all(name.startswith("layers.1.") for name in changed)
    for name in changed:
        # 3 bits and a sign: seven levels a channel at most
        assert all(len(row.unique()) <= 7 for row in gpt.get_parameter(name))


def test_all_blocks_are_rounded(tiny_voice: Voice) -> None:
    gpt = load_gpt(tiny_voice.folder)
    before = _weights(gpt)
    round_blocks(gpt, "all", 2)
    (every,) = [unit for unit in units_of(gpt) if unit.kind == "all"]
    assert all(
        not torch.equal(gpt.get_parameter(f"{n}.weight"), before[f"{n}.weight"]) for n in every.modules
    )
    assert torch.equal(gpt.code_head.weight, before["code_head.weight"])


def test_a_block_that_is_not_there_is_refused(tiny_voice: Voice) -> None:
    with pytest.raises(SpecError, match=r"'7'.*blocks 0 to 1"):
        round_blocks(load_gpt(tiny_voice.folder), "7", 3)
