from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.errors import SpecError
from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE
from labkit.quantize.weight_only import INT4_OPTIONS, INT8_OPTIONS, quantize_weights
from labkit.spec import Option

DEFAULTS = {
    8: {name: values[0] for name, values in INT8_OPTIONS.items()},
    4: {name: values[0] for name, values in INT4_OPTIONS.items()},
}


def quantize(
    source: Path, folder: Path, bits: int = 4, feeds: Iterable[dict[str, np.ndarray]] = (), **options: Option
) -> tuple[dict, onnx.ModelProto]:
    details = quantize_weights(
        source, folder, MODEL_FILE, HEAD_NODE, bits, {**DEFAULTS[bits], **options}, feeds
    )
    onnx.checker.check_model(str(folder / MODEL_FILE), full_check=True)
    return details, onnx.load(folder / MODEL_FILE)


@pytest.mark.parametrize("bits", [4, 8])
def test_every_product_but_the_heads_is_in_blocks(exact_in_blocks: Path, tmp_path: Path, bits: int) -> None:
    details, model = quantize(exact_in_blocks, tmp_path, bits, accuracy_level=1)
    nodes = {node.name: node for node in model.graph.node if node.op_type in ("MatMul", "MatMulNBits")}
    assert [name for name, node in nodes.items() if node.op_type == "MatMul"] == [HEAD_NODE]
    assert details["quantized_nodes"] == len(nodes) - 1 == 8
    attributes = {each.name: each.i for each in nodes["0.down.MatMul"].attribute}
    assert attributes == {"K": 96, "N": 64, "bits": bits, "block_size": 32, "accuracy_level": 1}


def test_the_heads_follow_when_asked(exact_in_blocks: Path, tmp_path: Path) -> None:
    _, model = quantize(exact_in_blocks, tmp_path, quantize_heads=True)
    assert "MatMul" not in {node.op_type for node in model.graph.node}


def only_node(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """A graph of one node, whose first input is the graph's."""
    node = next(each for each in model.graph.node if each.name == name)
    shape = ["batch", "tokens", "width"]
    given, result = (
        onnx.helper.make_tensor_value_info(each, onnx.TensorProto.FLOAT, shape)
        for each in (node.input[0], node.output[0])
    )
    tensors = [each for each in model.graph.initializer if each.name in node.input]
    graph = onnx.helper.make_graph([node], "one", [given], [result], tensors)
    return onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)


@pytest.mark.parametrize(
    ("bits", "options"),
    [
        (8, {}),
        (8, {"symmetric": False}),
        (8, {"block_size": 16}),
        (4, {}),
        (4, {"symmetric": True}),
        (4, {"block_size": 16}),
        (4, {"algorithm": "hqq"}),
    ],
)
def test_the_runtime_multiplies_by_what_the_blocks_stand_for(
    exact_in_blocks: Path, tmp_path: Path, bits: int, options: dict[str, Option]
) -> None:
    """One product of the graph, run alone in float32, against the restored matrix."""
    import onnxruntime as ort

    from labkit.quantize.blocks import quantize_blocks

    _, model = quantize(exact_in_blocks, tmp_path, bits, accuracy_level=1, **options)
    part = only_node(model, "1.down.MatMul")
    exact = onnx.load(exact_in_blocks / MODEL_FILE)
    weight = next(onnx.numpy_helper.to_array(t) for t in exact.graph.initializer if t.name == "1.down.weight")
    used = {**DEFAULTS[bits], **options}
    restored = quantize_blocks(
        weight, bits=bits, block=used["block_size"], symmetric=used["symmetric"], algorithm=used["algorithm"]
    ).restore()
    given = np.random.default_rng(0).standard_normal((1, 3, 96)).astype(np.float32)
    session = ort.InferenceSession(part.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"1.product": given})[0], given @ restored, atol=2e-5)
    assert np.abs(restored - weight).max() > 0


@pytest.mark.parametrize("bits", [4, 8])
def test_feedback_brings_the_graph_nearer_to_the_exact_one(
    exact_in_blocks: Path, feeds_in_blocks, tmp_path: Path, bits: int
) -> None:
    import onnxruntime as ort

    def hidden(folder: Path) -> np.ndarray:
        session = ort.InferenceSession(str(folder / MODEL_FILE), providers=["CPUExecutionProvider"])
        return session.run(["hidden"], feeds_in_blocks[1])[0]

    errors = []
    for algorithm in ("rtn", "gptq"):
        folder = tmp_path / algorithm
        folder.mkdir()
        quantize(exact_in_blocks, folder, bits, feeds_in_blocks, algorithm=algorithm, accuracy_level=1)
        errors.append(np.linalg.norm(hidden(folder) - hidden(exact_in_blocks)))
    assert 0 < errors[1] < 0.9 * errors[0]


def test_a_block_size_that_does_not_divide_is_named_with_those_that_do(
    exact: Path, exact_in_blocks: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        SpecError, match=r"block_size 64 does not divide the 96 inputs of 0.down.*choose 32, 16"
    ):
        quantize(exact_in_blocks, tmp_path, block_size=64)
    with pytest.raises(SpecError, match=r"does not divide the 64 inputs of 0.qkv.*choose 32, 16"):
        quantize(exact_in_blocks, tmp_path, block_size=128)
    with pytest.raises(SpecError, match=r"does not divide the 88 inputs.*choose int8-dynamic"):
        quantize(exact, tmp_path, block_size=16)
    assert list(tmp_path.iterdir()) == []


def test_options_that_contradict_each_other_are_refused(exact_in_blocks: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="hqq"):
        quantize(exact_in_blocks, tmp_path, algorithm="hqq", symmetric=True)


def test_layers_stay_in_float32_or_go_into_8_bits_among_others(exact_in_blocks: Path, tmp_path: Path) -> None:
    details, model = quantize(exact_in_blocks, tmp_path, fp32_layers="0", int8_layers="1")
    nodes = {node.name: node for node in model.graph.node if node.op_type in ("MatMul", "MatMulNBits")}
    layers = {name: [n for n in nodes if n.startswith(f"{name}.")] for name in ("0", "1")}
    assert {nodes[name].op_type for name in layers["0"]} == {"MatMul"}
    bits = [each.i for name in layers["1"] for each in nodes[name].attribute if each.name == "bits"]
    assert bits == [8] * 4 and details["quantized_nodes"] == 4
    assert set(details["excluded_nodes"]) == {HEAD_NODE, *layers["0"]}


def test_a_layer_in_8_bits_is_that_of_int8_weight(exact_in_blocks: Path, tmp_path: Path) -> None:
    (tmp_path / "4").mkdir()
    (tmp_path / "8").mkdir()
    _, mixed = quantize(exact_in_blocks, tmp_path / "4", 4, int8_layers="1")
    _, whole = quantize(exact_in_blocks, tmp_path / "8", 8)
    for name in ("1.down.weight.blocks", "1.down.weight.scales"):
        mine, other = (
            next(onnx.numpy_helper.to_array(t) for t in each.graph.initializer if t.name == name)
            for each in (mixed, whole)
        )
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fp32_layers": "2"}, r"no layer 2; this voice's GPT has layers 0 to 1"),
        ({"fp32_layers": "0,1", "int8_layers": "1"}, "both name layer 1"),
        ({"int8_layers": "first"}, "'first'; it names layers"),
    ],
)
def test_layers_that_are_not_there_or_named_twice_are_refused(
    exact_in_blocks: Path, tmp_path: Path, options: dict[str, Option], words: str
) -> None:
    with pytest.raises(SpecError, match=words):
        quantize(exact_in_blocks, tmp_path, **options)
