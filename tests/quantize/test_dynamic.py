from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE, ROPE_TABLES
from labkit.export.graph import weight_bytes
from labkit.quantize.dynamic import OPTIONS, quantize_dynamic
from labkit.voices import Voice

DEFAULTS = {name: values[0] for name, values in OPTIONS.items()}


def quantize(source: Path, folder: Path, **options: bool) -> tuple[dict, onnx.ModelProto]:
    details = quantize_dynamic(source, folder, MODEL_FILE, HEAD_NODE, {**DEFAULTS, **options})
    onnx.checker.check_model(str(folder / MODEL_FILE), full_check=True)
    return details, onnx.load(folder / MODEL_FILE)


def test_the_linears_are_integers_and_the_heads_are_not(
    exact: Path, tmp_path: Path, tiny_voice: Voice
) -> None:
    details, model = quantize(exact, tmp_path)
    products = [node.name for node in model.graph.node if node.op_type == "MatMul"]
    assert products == [HEAD_NODE]
    assert details == {"quantized_nodes": 4 * tiny_voice.config.gpt.layers, "excluded_nodes": [HEAD_NODE]}


def test_the_heads_follow_when_asked(exact: Path, tmp_path: Path) -> None:
    _, model = quantize(exact, tmp_path, quantize_heads=True)
    assert "MatMul" not in {node.op_type for node in model.graph.node}
    whole = weight_bytes(exact / MODEL_FILE, except_for=ROPE_TABLES)
    assert weight_bytes(tmp_path / MODEL_FILE, except_for=ROPE_TABLES) < 0.35 * whole


def test_per_channel_gives_each_output_its_own_scale(exact: Path, tmp_path: Path, tiny_voice: Voice) -> None:
    shapes = {}
    for per_channel in (True, False):
        folder = tmp_path / str(per_channel)
        folder.mkdir()
        _, model = quantize(exact, folder, per_channel=per_channel)
        shapes[per_channel] = [
            list(t.dims) for t in model.graph.initializer if t.name == "0.down.weight_scale"
        ]
    assert shapes == {True: [[tiny_voice.config.gpt.hidden]], False: [[]]}


def test_a_reduced_range_uses_seven_bits(exact: Path, tmp_path: Path) -> None:
    _, model = quantize(exact, tmp_path, reduce_range=True)
    weight = next(t for t in model.graph.initializer if t.name == "0.down.weight_quantized")
    assert np.abs(onnx.numpy_helper.to_array(weight, str(tmp_path)).astype(int)).max() <= 64
