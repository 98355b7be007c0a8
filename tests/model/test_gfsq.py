"""Golden numbers come from vector_quantize_pytorch itself: 1.14.24 for "levels-1", 1.32.0 for "levels"."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from labkit.model.config import ConvStackConfig, DvaeConfig, ResidualScale
from labkit.model.gfsq import GFSQ

SIZES = DvaeConfig(
    dim=6,
    encoder=ConvStackConfig(6, 12, 8, 1, 4),
    decoder=ConvStackConfig(6, 6, 8, 1, 4),
    vq_dim=12,
)
CODES = {
    "levels-1": [
        *([579, 529, 120, 120], [104, 104, 521, 523], [20, 20, 504, 504], [524, 523, 103, 104]),
        *([554, 504, 120, 120], [104, 104, 520, 522], [20, 20, 504, 504]),
    ],
    "levels": [
        *([554, 604, 120, 40], [104, 100, 522, 520], [20, 70, 504, 604], [523, 523, 103, 227]),
        *([554, 529, 120, 60], [104, 227, 521, 522], [20, 95, 504, 579]),
    ],
}
FIXED = [[0, 624, 311, 57], [1, 2, 3, 4], [312, 312, 312, 312], [624, 0, 100, 599]]
DECODED = {  # features 0, 5, 6 and 11 of each step
    "levels-1": [
        *([0.491323, -0.826012, -0.462637, -0.164598], [1.057763, -1.434992, 0.116098, -1.794709]),
        *([0.731689, -0.984765, -0.178246, -0.678394], [0.972055, -1.143519, -0.496930, 0.664715]),
    ],
    "levels": [
        *([0.475298, -0.815428, -0.437291, -0.190391], [1.025342, -1.397921, 0.098018, -1.734663]),
        *([0.731689, -0.984765, -0.178246, -0.678394], [0.988079, -1.154102, -0.511941, 0.696160]),
    ],
}
SCALES: tuple[ResidualScale, ...] = ("levels-1", "levels")


def wave(*shape: int, phase: float = 0.0) -> Tensor:
    count = math.prod(shape)
    return torch.tensor([math.cos(i * 1.7 + phase) for i in range(count)]).reshape(shape)


def golden_quantizer(scale: ResidualScale) -> GFSQ:
    quantizer = GFSQ(replace(SIZES, residual_scale=scale))
    with torch.no_grad():
        for g in range(2):
            quantizer.project_in[g].weight.copy_(wave(4, 6, phase=g))
            quantizer.project_in[g].bias.copy_(wave(4, phase=g + 0.5))
            quantizer.project_out[g].weight.copy_(wave(6, 4, phase=g + 0.25))
            quantizer.project_out[g].bias.copy_(wave(6, phase=g + 0.75))
    return quantizer


@pytest.mark.parametrize("scale", SCALES)
def test_encodes_like_the_library(scale: ResidualScale) -> None:
    codes = golden_quantizer(scale).encode(wave(1, 7, 12, phase=0.1) * 1.5)
    assert codes[0].tolist() == CODES[scale]


@pytest.mark.parametrize("scale", SCALES)
def test_decodes_like_the_library(scale: ResidualScale) -> None:
    features = golden_quantizer(scale).decode(torch.tensor([FIXED]))
    assert torch.allclose(features[0, :, [0, 5, 6, 11]], torch.tensor(DECODED[scale]), atol=2e-6)


@pytest.mark.parametrize("levels", [(5, 5, 5, 5), (8, 5, 4), (3,)])
@pytest.mark.parametrize("scale", SCALES)
def test_quantized_features_are_what_the_codes_decode_to(
    scale: ResidualScale, levels: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    quantizer = GFSQ(replace(SIZES, levels=levels, residuals=3, residual_scale=scale))
    features, codes = quantizer(torch.randn(2, 30, 12) * 2)
    assert codes.shape == (2, 30, 6)
    assert codes.min() >= 0 and codes.max() < math.prod(levels)
    assert torch.allclose(features, quantizer.decode(codes), atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 624), st.sampled_from(SCALES))
def test_every_code_survives_its_digits(code: int, scale: ResidualScale) -> None:
    stages = GFSQ(replace(SIZES, residual_scale=scale)).stages
    digits = stages.digits(torch.tensor([code]))
    assert digits.shape == (1, 4) and digits.max() < 5
    assert stages.codes(digits).tolist() == [code]


@pytest.mark.parametrize("scale", SCALES)
def test_gradient_passes_straight_through(scale: ResidualScale) -> None:
    torch.manual_seed(1)
    quantizer = GFSQ(replace(SIZES, residual_scale=scale))
    x = torch.randn(1, 5, 12, requires_grad=True)
    quantizer(x)[0].square().sum().backward()
    assert x.grad is not None and x.grad.abs().min() > 0
    assert all(layer.weight.grad.abs().sum() > 0 for layer in quantizer.project_in)


def test_training_noise_changes_what_is_heard_but_not_the_codes() -> None:
    torch.manual_seed(2)
    quantizer = GFSQ(SIZES)
    x = torch.randn(4, 20, 12)
    clean, codes = quantizer(x)
    jittered, same = quantizer(x, jitter=(0.5, 0.5))
    dropped, same_again = quantizer(x, residual_dropout=1.0)
    assert torch.equal(codes, same) and torch.equal(codes, same_again)
    assert not torch.allclose(clean, jittered)
    first_only = codes.clone()
    first_only[..., 1::2] = 312  # the middle code of a later stage adds nothing
    assert torch.allclose(dropped, quantizer.decode(first_only), atol=1e-6)
