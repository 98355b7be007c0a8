from __future__ import annotations

import torch
from torch import nn

from labkit.model.no_init import without_initialization


def test_inside_nothing_is_drawn_and_outside_everything_is_as_before() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    with without_initialization():
        linear = nn.Linear(4, 4)
        nn.init.normal_(linear.weight)
        nn.init.ones_(linear.bias)
    assert torch.equal(torch.get_rng_state(), before)
    nn.init.ones_(linear.weight)
    assert torch.all(linear.weight == 1)


def test_ordinary_operations_still_run() -> None:
    with without_initialization():
        assert torch.equal(torch.arange(3) * 2, torch.tensor([0, 2, 4]))
        assert torch.all(torch.zeros(2).fill_(3.0) == 3)
