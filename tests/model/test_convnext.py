from __future__ import annotations

import torch

from labkit.model.config import ConvStackConfig
from labkit.model.convnext import ConvNeXtBlock, ConvStack


def test_a_block_without_scale_is_the_identity() -> None:
    block = ConvNeXtBlock(6, 12, kernel=7, dilation=2)
    x = torch.randn(2, 6, 11)
    assert not torch.allclose(block(x), x)
    torch.nn.init.zeros_(block.scale)
    assert torch.equal(block(x), x)


def test_dilation_widens_what_a_frame_hears_and_keeps_the_length() -> None:
    torch.manual_seed(0)
    x, moved = torch.zeros(1, 4, 41), torch.zeros(1, 4, 41)
    moved[0, :, 20] = torch.tensor([1.0, -2.0, 3.0, 0.5])
    for dilation in (1, 2):
        block = ConvNeXtBlock(4, 8, kernel=7, dilation=dilation)
        heard = (block(moved) - block(x)).abs().amax((0, 1)).nonzero()[:, 0]
        assert heard.min() == 20 - 3 * dilation and heard.max() == 20 + 3 * dilation


def test_stack_changes_channels_only() -> None:
    stack = ConvStack(ConvStackConfig(idim=5, odim=9, hidden=8, layers=2, bottleneck=4))
    assert stack(torch.randn(3, 5, 17)).shape == (3, 9, 17)
    assert len(stack.blocks) == 2 and stack.conv_out.bias is None
