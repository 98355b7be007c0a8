from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE, ROPE_TABLES
from labkit.export.graph import weight_bytes
from labkit.quantize.dynamic import NETWORK_OPTIONS, OPTIONS, quantize_gpt_dynamic, quantize_network
from labkit.spec import Option
from labkit.voices import Voice

DEFAULTS = {name: values[0] for name, values in OPTIONS.items()}


def silent(_: str) -> None: ...


def quantize(source: Path, folder: Path, feeds=(), **options: Option) -> tuple[dict, onnx.ModelProto]:
    folder.mkdir(exist_ok=True)
    details = quantize_gpt_dynamic(
        source, folder, MODEL_FILE, HEAD_NODE, {**DEFAULTS, **options}, feeds, silent
    )
    onnx.checker.check_model(str(folder / MODEL_FILE), full_check=True)
    return details, onnx.load(folder / MODEL_FILE)


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize(("wide", "narrow"), [("none", 4), ("down", 3), ("all", 0)])
def test_the_linears_are_integers_and_the_heads_are_not(
    exact: Path, tmp_path: Path, tiny_voice: Voice, wide: str, narrow: int
) -> None:
    details, model = quantize(exact, tmp_path, wide_activations=wide)
    layers, found = tiny_voice.config.gpt.layers, operators(model)
    assert [node.name for node in model.graph.node if node.op_type == "MatMul"] == [HEAD_NODE]
    assert found["DynamicQuantizeMatMul"] == narrow * layers
    assert found["MatMulIntegerToFloat"] == (4 - narrow) * layers
    assert details["quantized_nodes"] == 4 * layers and details["excluded_nodes"] == [HEAD_NODE]


def test_the_heads_follow_when_asked(exact: Path, tmp_path: Path) -> None:
    _, model = quantize(exact, tmp_path, quantize_heads=True)
    assert "MatMul" not in operators(model)
    whole = weight_bytes(exact / MODEL_FILE, except_for=ROPE_TABLES)
    assert weight_bytes(tmp_path / MODEL_FILE, except_for=ROPE_TABLES) < 0.35 * whole


def test_layers_named_stay_in_float32(exact: Path, tmp_path: Path) -> None:
    details, model = quantize(exact, tmp_path, fp32_layers="0")
    assert operators(model)["MatMul"] == 5 and "0.down.MatMul" in details["excluded_nodes"]


@pytest.mark.parametrize("wide", ["none", "all"])
def test_per_channel_gives_each_output_its_own_scale(
    exact: Path, tmp_path: Path, tiny_voice: Voice, wide: str
) -> None:
    shapes = {}
    for per_channel in (True, False):
        _, model = quantize(
            exact, tmp_path / str(per_channel), per_channel=per_channel, wide_activations=wide
        )
        shapes[per_channel] = [list(t.dims) for t in model.graph.initializer if t.name == "0.down.scales"]
    assert shapes == {True: [[tiny_voice.config.gpt.hidden]], False: [[]]}


def test_a_reduced_range_uses_seven_bits(exact: Path, tmp_path: Path) -> None:
    _, model = quantize(exact, tmp_path, reduce_range=True)
    weight = next(t for t in model.graph.initializer if t.name == "0.down.codes")
    assert np.abs(onnx.numpy_helper.to_array(weight, str(tmp_path)).astype(int)).max() == 63


def test_narrow_products_are_those_of_onnx_runtimes_own_quantizer(exact: Path, tmp_path: Path, feeds) -> None:
    """Its nodes are fused on loading to the operator that is written here."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    quantize(exact, ours, wide_activations="none")
    theirs.mkdir()
    options = {name: values[0] for name, values in NETWORK_OPTIONS.items()}
    details = quantize_network(exact, theirs, MODEL_FILE, HEAD_NODE, options)
    assert details["tool"] == "onnxruntime" and details["quantized_nodes"] == 8
    wanted, found = (hidden(folder, feeds[1]) for folder in (theirs, ours))
    np.testing.assert_allclose(found, wanted, atol=2e-3 * np.abs(wanted).max())


def test_wide_activations_and_feedback_each_lower_the_error(exact: Path, tmp_path: Path, feeds) -> None:
    wanted = hidden(exact, feeds[1])
    errors = {}
    for options in (
        {"wide_activations": "none"},
        {"wide_activations": "down"},
        {},
        {"algorithm": "gptq"},
    ):
        folder = tmp_path / str(len(errors))
        quantize(exact, folder, feeds, **options)
        errors[len(errors)] = np.linalg.norm(hidden(folder, feeds[1]) - wanted) / np.linalg.norm(wanted)
    assert 0 < errors[3] < errors[2] < errors[1] < errors[0] < 0.05


def test_with_wide_activations_a_row_does_not_depend_on_its_batch(exact: Path, tmp_path: Path, feeds) -> None:
    quantize(exact, tmp_path, wide_activations="all")
    alone = feeds[1]
    pair = {name: np.concatenate([each, each]) for name, each in alone.items() if name != "longest"}
    pair["embeddings"][1] *= 30
    pair["longest"] = alone["longest"]
    both = hidden(tmp_path, pair).reshape(2, -1)
    np.testing.assert_allclose(both[0], hidden(tmp_path, alone), atol=1e-5)


def hidden(folder: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    import onnxruntime as ort

    session = ort.InferenceSession(str(folder / MODEL_FILE), providers=["CPUExecutionProvider"])
    return session.run(["hidden"], feed)[0].ravel()
