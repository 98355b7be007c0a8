"""What a graph is, for whoever gets it without the lab: arrays in and out, operators, versions, sensible shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

Range = tuple[int, int, int]
"""The smallest, the most usual and the largest size of an axis."""
_BATCH: Range = (1, 1, 4)


def describe(model: Path) -> dict[str, Any]:
    """Opset, IR version, inputs and outputs with type and shape, and how often each operator occurs."""
    proto = onnx.load(model, load_external_data=False)
    operators = Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in proto.graph.node)
    return {
        "opsets": {each.domain or "ai.onnx": each.version for each in proto.opset_import},
        "ir_version": proto.ir_version,
        "inputs": {value.name: _array(value) for value in proto.graph.input},
        "outputs": {value.name: _array(value) for value in proto.graph.output},
        "operators": dict(operators.most_common()),
    }


def profiles(model: Path, positions: int) -> dict[str, dict[str, list[list[int]]]]:
    """Profile -> input -> its smallest, usual and largest shape, for compilers that ask for them.

    `positions`: the longest prompt and steps of the voice. A GPT has one profile for prompts and one for steps;
    ONNX Runtime's own graph has none, because nothing else reads it.
    """
    prompt: dict[str, Range] = {
        "batch": _BATCH, "tokens": (1, min(48, positions), min(512, positions)), "past": (0, 0, 0),
    }  # fmt: skip
    step: dict[str, Range] = {
        "batch": _BATCH, "tokens": (1, 1, 1), "past": (1, min(256, positions - 1), positions - 1),
    }  # fmt: skip
    graph = onnx.load(model, load_external_data=False).graph
    inputs = graph.input
    if any(node.domain for node in graph.node):
        return {}
    if any(value.name == "embeddings" for value in inputs):
        return {"prompt": _shapes(inputs, prompt), "step": _shapes(inputs, step)}
    return {"any": _shapes(inputs, {"batch": _BATCH, "time": (2, 256, 1536)})}


def _shapes(inputs: Any, ranges: Mapping[str, Range]) -> dict[str, list[list[int]]]:
    return {
        value.name: [
            [ranges[axis][i] if isinstance(axis, str) else axis for axis in _array(value)["shape"]]
            for i in range(3)
        ]
        for value in inputs
    }


def _array(value: onnx.ValueInfoProto) -> dict[str, Any]:
    kind = value.type.tensor_type
    shape = [axis.dim_param or axis.dim_value for axis in kind.shape.dim]
    return {"type": onnx.TensorProto.DataType.Name(kind.elem_type).lower(), "shape": shape}
