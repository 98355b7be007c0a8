"""One product of 16-bit activations, run by ONNX Runtime, against the product of exact activations."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from labkit.quantize.channels import quantize_channels
from labkit.quantize.two_terms import NodeList, dynamic_product, has_two_terms, static_product

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((96, 40)).astype(np.float32)
CODES, SCALES = quantize_channels(WEIGHT)


def run(made: NodeList, x: np.ndarray) -> np.ndarray:
    import onnxruntime as ort

    def port(name: str) -> onnx.ValueInfoProto:
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", "tokens", "width"])

    graph = onnx.helper.make_graph(made.nodes, "one", [port("x")], [port("y")], made.tensors)
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": x})[0]


def heavy_tailed(batch: int, tokens: int) -> np.ndarray:
    x = RNG.standard_normal((batch, tokens, 96)).astype(np.float32)
    x[..., 5] *= 30
    return x


def error(found: np.ndarray, x: np.ndarray) -> float:
    wanted = x @ (CODES * SCALES)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def test_dynamic_activations_have_16_bits() -> None:
    x = heavy_tailed(2, 3)
    assert error(run(dynamic_product("p", "x", "y", CODES, SCALES), x), x) < 2e-4  # 8 bits: about 2e-2


def test_each_row_has_a_range_of_its_own() -> None:
    x = heavy_tailed(2, 3)
    x[1, 2] *= 1e4
    found = run(dynamic_product("p", "x", "y", CODES, SCALES), x)
    assert error(found[:1], x[:1]) < 2e-4


@pytest.mark.parametrize("size", [0.0, 1e-38, 1e30])
def test_rows_of_any_size_are_finite(size: float) -> None:
    x = heavy_tailed(1, 2)
    x[0, 1] *= np.float32(size)
    found = run(dynamic_product("p", "x", "y", CODES, SCALES), x)
    assert np.isfinite(found).all() and error(found[:, :1], x[:, :1]) < 2e-4


def test_a_single_scale_of_the_weights_will_do() -> None:
    x = heavy_tailed(1, 4)
    codes, scale = quantize_channels(WEIGHT, per_channel=False)
    found = run(dynamic_product("p", "x", "y", codes, scale), x)
    np.testing.assert_allclose(found, x @ (codes * scale), atol=2e-3 * np.abs(found).max())


def test_static_activations_have_16_bits_up_to_their_range_and_are_clipped_beyond() -> None:
    x = heavy_tailed(2, 3)
    largest = float(np.abs(x).max())
    assert error(run(static_product("p", "x", "y", CODES, SCALES, largest), x), x) < 2e-4
    clipped = run(static_product("p", "x", "y", CODES, SCALES, largest / 2), x)
    step = largest / 2 / 127  # both terms at their ends, codes of 0 and of 255
    wanted = np.clip(x, -(128 + 128 / 254) * step, 127.5 * step) @ (CODES * SCALES)
    np.testing.assert_allclose(clipped, wanted, atol=1e-3 * np.abs(wanted).max())


def test_where_two_terms_are_wanted() -> None:
    products = ("0.qkv.MatMul", "3.down.MatMul", "logits.MatMul")
    assert [has_two_terms(name, "down") for name in products] == [False, True, False]
    assert all(has_two_terms(name, "all") for name in products)
    assert not any(has_two_terms(name, "none") for name in products)
