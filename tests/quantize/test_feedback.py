"""Rounding with feedback: what it promises about products, and how it takes odd inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.quantize.blocks import quantize_blocks
from labkit.quantize.channels import quantize_channels
from labkit.quantize.feedback import GramCollector


def correlated(seed: int, rows: int = 400, inputs: int = 64) -> np.ndarray:
    """Inputs as networks have them: a few directions carry most of it."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((inputs, inputs)) * np.geomspace(1, 0.02, inputs)[:, None]
    return (rng.standard_normal((rows, inputs)) @ mixing).astype(np.float32)


def gram_of(x: np.ndarray) -> np.ndarray:
    collector = GramCollector()
    for batch in np.array_split(x, 3):
        collector.collect(batch[None])
    return collector.gram()


def loss(restored: np.ndarray, weight: np.ndarray, x: np.ndarray) -> float:
    return float(np.linalg.norm(x @ (restored - weight)) / np.linalg.norm(x @ weight))


@given(seed=st.integers(0, 99), block=st.sampled_from([16, 32, 64]), symmetric=st.booleans())
def test_blocks_with_feedback_keep_the_products_of_new_inputs_of_the_same_kind(
    seed: int, block: int, symmetric: bool
) -> None:
    x = correlated(seed, 800)
    weight = np.random.default_rng(seed + 1).standard_normal((64, 12)).astype(np.float32)
    plain, fed = (
        quantize_blocks(
            weight, bits=4, block=block, symmetric=symmetric, algorithm=algorithm, gram=gram_of(x[:400])
        ).restore()
        for algorithm in ("rtn", "gptq")
    )
    assert loss(fed, weight, x[400:]) < 0.8 * loss(plain, weight, x[400:])


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("top", [127, 63])
def test_channels_with_feedback_stay_within_their_codes(per_channel: bool, top: int) -> None:
    x = correlated(3, inputs=200)  # more inputs than are rounded before the rest is updated at once
    weight = np.random.default_rng(4).standard_normal((200, 7)).astype(np.float32)
    errors = []
    for gram in (None, gram_of(x)):
        codes, scales = quantize_channels(weight, gram=gram, per_channel=per_channel, top=top)
        assert codes.dtype == np.int8 and np.abs(codes.astype(int)).max() <= top
        assert scales.shape == ((7,) if per_channel else ())
        errors.append(loss(codes * scales, weight, x))
    assert errors[1] < 0.7 * errors[0] < 0.02


def test_uncorrelated_inputs_leave_nothing_to_feed_back() -> None:
    weight = np.random.default_rng(5).standard_normal((64, 9)).astype(np.float32)
    plain, _ = quantize_channels(weight)
    fed, _ = quantize_channels(weight, gram=np.eye(64, dtype=np.float32))
    np.testing.assert_array_equal(fed, plain)


def test_inputs_never_seen_are_rounded_to_the_nearest() -> None:
    """Dead inputs, and a calibration in which everything was zero, make no division by zero."""
    weight = np.random.default_rng(6).standard_normal((64, 9)).astype(np.float32)
    gram = gram_of(correlated(6))
    gram[10], gram[:, 10] = 0, 0
    codes, scales = quantize_channels(weight, gram=gram)
    assert np.abs(codes[10] * scales - weight[10]).max() <= scales.max() * 0.501
    silent, _ = quantize_channels(weight, gram=np.zeros((64, 64), np.float32))
    np.testing.assert_array_equal(silent, quantize_channels(weight)[0])


def test_an_output_of_zeros_stays_one() -> None:
    weight = np.random.default_rng(7).standard_normal((64, 3)).astype(np.float32)
    weight[:, 1] = 0
    for gram in (None, gram_of(correlated(7))):
        codes, scales = quantize_channels(weight, gram=gram)
        assert (codes[:, 1] == 0).all() and np.isfinite(scales).all()


def test_a_gram_matrix_is_the_sum_over_batches_and_wants_finite_inputs() -> None:
    x = correlated(8)
    np.testing.assert_allclose(gram_of(x), x.T @ x, rtol=1e-4, atol=1e-3)
    with pytest.raises(RuntimeError, match="nothing was collected"):
        GramCollector().gram()
    x[3, 3] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        GramCollector().collect(x)
    with pytest.raises(ValueError, match="needs the Gram matrix"):
        quantize_blocks(np.ones((32, 2), np.float32), bits=4, block=32, symmetric=True, algorithm="gptq")
