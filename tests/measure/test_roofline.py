from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.measure.roofline import float32_step_weights, roofline_share, step_bytes


def test_the_full_network_reads_what_its_weights_weigh() -> None:
    # 20 layers of 768 x 3072 and four heads of 626 rows: 190.7 million weights
    weights = float32_step_weights(layers=20, hidden=768, intermediate=3072, head_rows=4 * 626)
    assert weights == 4 * 190_666_752
    assert step_bytes(weights, 2 * 20 * 768 * 4, 300) - weights == pytest.approx(37e6, rel=0.01)


@given(st.integers(1, 10**10), st.floats(1e-6, 10), st.floats(1e6, 1e13))
def test_share_is_achieved_over_possible(read: int, step_s: float, bandwidth: float) -> None:
    result = roofline_share(read, step_s, bandwidth)
    assert result.share == pytest.approx(read / step_s / bandwidth)
    assert result.impossible == (result.share > 1)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((None, 0.1, 1e9), "bytes"),
        ((0, 0.1, 1e9), "bytes"),
        ((100, None, 1e9), "timed"),
        ((100, 0.1, None), "bandwidth"),
    ],
)
def test_what_is_missing_is_named(arguments: tuple, word: str) -> None:
    result = roofline_share(*arguments)
    assert result.share is None and word in result.reason
