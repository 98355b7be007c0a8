from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.quantize.blocks import quantize_blocks


def matrix(seed: int, inputs: int = 64, outputs: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((inputs, outputs)).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 99), bits=st.sampled_from([4, 8]), block=st.sampled_from([16, 32, 64]),
    symmetric=st.booleans(), scale=st.sampled_from([1e-6, 1.0, 1e4]),
)  # fmt: skip
def test_every_weight_is_within_half_a_level(
    seed: int, bits: int, block: int, symmetric: bool, scale: float
) -> None:
    weight = scale * matrix(seed)
    blocks = quantize_blocks(weight, bits=bits, block=block, symmetric=symmetric, algorithm="rtn")
    level = np.abs(blocks.scales).repeat(block, 1).T
    # at the far end from the largest magnitude, symmetric codes are one level short
    allowed = level * (1.001 if symmetric else 0.501)
    assert (np.abs(blocks.restore() - weight) <= allowed + scale * 1e-6).all()


@pytest.mark.parametrize(("symmetric", "algorithm"), [(True, "rtn"), (False, "rtn"), (False, "hqq")])
def test_zeros_stay_zeros(symmetric: bool, algorithm: str) -> None:
    weight = matrix(1)
    weight[:32, 2] = 0
    weight[40] = 0
    blocks = quantize_blocks(weight, bits=4, block=32, symmetric=symmetric, algorithm=algorithm)
    restored = blocks.restore()
    assert np.isfinite(restored).all()
    assert (restored[:32, 2] == 0).all() and (restored[40] == 0).all()


def test_what_lies_on_levels_comes_back_exactly() -> None:
    levels = np.random.default_rng(0).integers(0, 16, (64, 5)).astype(np.float32)
    levels[::32], levels[1::32] = 0, 15
    weight = (levels - 7) * 0.25
    blocks = quantize_blocks(weight, bits=4, block=32, symmetric=False, algorithm="rtn")
    np.testing.assert_array_equal(blocks.restore(), weight)


@pytest.mark.parametrize("bits", [4, 8])
def test_hqq_lowers_the_error_it_is_about_and_harms_no_block(bits: int) -> None:
    weight = matrix(3, 512, 40)
    weight[::50] *= 4

    def errors(algorithm: str) -> np.ndarray:
        blocks = quantize_blocks(weight, bits=bits, block=32, symmetric=False, algorithm=algorithm)
        return (np.abs(blocks.restore() - weight).T.reshape(-1, 32) ** 0.7).sum(1)

    plain, moved = errors("rtn"), errors("hqq")
    assert (moved <= plain * 1.0001).all()
    assert moved.sum() < 0.99 * plain.sum()


def test_blocks_are_laid_out_as_the_runtime_does_it() -> None:
    """Codes, scales and zero points against ONNX Runtime's own 4-bit quantizer."""
    from onnxruntime.capi._pybind_state import quantize_matmul_4bits

    weight = matrix(5, 96, 8)
    codes = np.zeros((8, 3, 16), np.uint8)
    scales, zeros = np.zeros(24, np.float32), np.zeros(16, np.uint8)
    quantize_matmul_4bits(codes, weight, scales, zeros, 32, 8, 96, False)
    ours = quantize_blocks(weight, bits=4, block=32, symmetric=False, algorithm="rtn").packed()
    np.testing.assert_allclose(ours[1], scales, rtol=1e-6)
    np.testing.assert_array_equal(ours[2], zeros & np.array([0xFF, 0x0F] * 8, np.uint8))
    assert (ours[0] == codes).mean() > 0.99  # a tie may be rounded either way


def test_a_block_that_does_not_fit_and_hqq_without_zero_points_are_refused() -> None:
    with pytest.raises(ValueError, match="block 48 does not divide 64"):
        quantize_blocks(matrix(0), bits=4, block=48, symmetric=True, algorithm="rtn")
    with pytest.raises(ValueError, match="symmetric"):
        quantize_blocks(matrix(0), bits=4, block=32, symmetric=True, algorithm="hqq")
