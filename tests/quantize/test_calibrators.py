"""The calibrators against pytorch-quantization's own numbers, and what they do with odd tensors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.quantize.calibrators import HistogramCalibrator, MaxCalibrator

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "calibrators.json").read_text())
OPTIONS = {"percentile": {"percentile": 99.9}, "mse": {}, "entropy": {"stride": 4}}


def batches(kind: str) -> list[np.ndarray]:
    """Three tensors [64, 128] of one distribution, the second of a larger range than the first."""
    random = np.random.RandomState(7)
    draw = {
        "normal": lambda n: random.randn(n),
        "laplace": lambda n: random.laplace(size=n),
        "relu": lambda n: np.maximum(random.randn(n), 0),
        "outliers": lambda n: np.where(random.rand(n) < 1e-3, 20, 1) * random.randn(n),
    }[kind]
    return [(draw(8192) * scale).astype(np.float32).reshape(64, 128) for scale in (1.0, 1.5, 0.7)]


def collected(
    tensors: list[np.ndarray], bits: int = 8, unsigned: bool = False, **options
) -> HistogramCalibrator:
    calibrator = HistogramCalibrator(bits, None, unsigned, **options)
    for tensor in tensors:
        calibrator.collect(tensor)
    return calibrator


@pytest.mark.parametrize("case", GOLDEN)
def test_ranges_are_those_of_pytorch_quantization(case: str) -> None:
    kind, bits, sign = case.split("-")
    calibrator = collected(batches(kind), int(bits), sign == "unsigned")
    for method, options in OPTIONS.items():
        assert calibrator.compute_amax(method, **options) == pytest.approx(GOLDEN[case][method], rel=1e-6), (
            method
        )


@pytest.mark.parametrize(("axis", "shape"), [(None, ()), (0, (64, 1)), (-1, (1, 128)), ((0, 1), (64, 128))])
def test_the_largest_magnitude_keeps_its_axes(axis, shape) -> None:
    calibrator = MaxCalibrator(8, axis, False)
    for tensor in batches("laplace"):
        calibrator.collect(tensor)
    everything = np.abs(np.stack(batches("laplace"))).max(axis=0)
    found = calibrator.compute_amax()
    assert found.shape == shape
    reduced = tuple(i for i in range(2) if len(shape) == 0 or shape[i] == 1)
    np.testing.assert_array_equal(found, everything.max(axis=reduced, keepdims=bool(shape)))


def test_fewer_bits_clip_more() -> None:
    ranges = [collected(batches("laplace"), bits).compute_amax("mse") for bits in (8, 6, 4)]
    assert ranges == sorted(ranges, reverse=True) and ranges[0] > 1.5 * ranges[-1]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.floats(1e-3, 1e3), st.sampled_from(["percentile", "mse", "entropy"]))
def test_a_range_scales_with_the_values_and_never_exceeds_them(seed: int, scale: float, method) -> None:
    values = np.random.RandomState(seed).randn(500).astype(np.float32)
    once, scaled = (
        collected([values * np.float32(s)], num_bins=256).compute_amax(method, stride=16)
        for s in (1.0, scale)
    )
    assert 0 < once <= np.abs(values).max() * 1.00001
    assert scaled == pytest.approx(once * scale, rel=0.1)  # a value on a border may change its bin


def test_the_order_of_batches_behind_the_first_does_not_matter() -> None:
    first, second, third = batches("normal")
    for method in OPTIONS:
        assert collected([first, second, third]).compute_amax(method, stride=8) == collected(
            [first, third, second]
        ).compute_amax(method, stride=8)


def test_zeros_before_any_other_value_are_counted() -> None:
    zeros, ones = np.zeros((4, 25), np.float32), np.ones(100, np.float32)
    assert collected([zeros, ones]).compute_amax("percentile", percentile=50) < 0.01
    assert collected([zeros, ones], skip_zeros=True).compute_amax("percentile", percentile=50) > 0.9
    assert collected([zeros]).compute_amax("entropy") == 0.0


@pytest.mark.parametrize(
    "make", [lambda: MaxCalibrator(8, None, False), lambda: HistogramCalibrator(8, None, False)]
)
@pytest.mark.parametrize(
    ("tensor", "words"), [(np.zeros((0, 3)), "no values"), (np.array([1.0, np.nan]), "not finite")]
)
def test_tensors_without_a_range_are_refused(make, tensor, words) -> None:
    with pytest.raises(ValueError, match=words):
        make().collect(tensor)


def test_asking_before_collecting_or_after_a_reset_is_an_error() -> None:
    for calibrator in (MaxCalibrator(8, None, False), collected(batches("normal"))):
        calibrator.reset()
    with pytest.raises(RuntimeError, match="nothing was collected"):
        calibrator.compute_amax("mse")
    with pytest.raises(RuntimeError, match="nothing was collected"):
        MaxCalibrator(8, None, False).compute_amax()


def test_wrong_requests_are_named() -> None:
    calibrator = collected(batches("normal"))
    with pytest.raises(ValueError, match=r"'kl' is unknown; methods: entropy, mse, percentile"):
        calibrator.compute_amax("kl")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="percentile 101"):
        calibrator.compute_amax("percentile", percentile=101)
    with pytest.raises(ValueError, match="axis is 0"):
        HistogramCalibrator(8, 0, False)  # type: ignore[arg-type]
    by_row = MaxCalibrator(8, 0, False)
    by_row.collect(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"\(4, 2\)"):
        by_row.collect(np.ones((4, 2)))


@pytest.mark.parametrize("original", ["pytorch_quantization.calib", "modelopt.torch.quantization.calib"])
def test_the_original_says_the_same_where_it_is_installed(original: str) -> None:
    calib = pytest.importorskip(original)
    torch = pytest.importorskip("torch")
    theirs, mine = calib.HistogramCalibrator(8, None, False), HistogramCalibrator(8, None, False)
    for tensor in batches("laplace"):
        theirs.collect(torch.from_numpy(tensor))
        mine.collect(tensor)
    for method, options in (("percentile", {"percentile": 99.9}), ("entropy", {"stride": 16})):
        wanted = float(theirs.compute_amax(method, **options))
        assert mine.compute_amax(method, **options) == pytest.approx(wanted, rel=1e-6), method
