"""What the transforms of exported graphs share: finding the products that have weights, replacing them, writing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.quantize.layers import layer_of, layers_of
from labkit.spec import Option

if TYPE_CHECKING:
    import onnx

_DATA = "weights.bin"
_INLINE_BYTES = 1024


def constant_products(model: onnx.ModelProto, excluded: Collection[str]) -> list[onnx.NodeProto]:
    """The MatMul nodes whose second factor is a tensor of the graph, without those named in `excluded`."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return [
        node
        for node in model.graph.node
        if node.op_type == "MatMul" and node.input[1] in weights and node.name not in excluded
    ]


def count_layers(model: onnx.ModelProto) -> int:
    """How many layers the products of an exported GPT name; 0 for another graph."""
    layers = [layer_of(node.name) for node in constant_products(model, [])]
    return 1 + max((layer for layer in layers if layer is not None), default=-1)


def left_alone(model: onnx.ModelProto, heads: str, options: Mapping[str, Option]) -> list[str]:
    """The products that stay in float32: those of `fp32_layers`, and `heads` unless `quantize_heads` is set.

    SpecError for a layer that is not there.
    """
    exact = layers_of("fp32_layers", options.get("fp32_layers", ""), count_layers(model))
    kept = [node.name for node in constant_products(model, []) if layer_of(node.name) in exact]
    return kept if options.get("quantize_heads") or not heads else [*kept, heads]


def take_weight(model: onnx.ModelProto, name: str) -> NDArray[np.float32]:
    """Remove a tensor from the graph and return its values."""
    import onnx

    at = [tensor.name for tensor in model.graph.initializer].index(name)
    values: NDArray[np.float32] = onnx.numpy_helper.to_array(model.graph.initializer[at])
    del model.graph.initializer[at]
    return values


def replace_nodes(model: onnx.ModelProto, replaced: Mapping[str, list[Any]]) -> None:
    """Put nodes in the places of those that have the given names; the others stay where they are."""
    import onnx

    ordered = [each for node in model.graph.node for each in replaced.get(node.name, [node])]
    nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in ordered]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def save(model: onnx.ModelProto, target: Path) -> None:
    """Write the graph to `target` and its tensors, if any is large, to one file beside it."""
    import onnx

    onnx.save_model(
        model, str(target), save_as_external_data=True, all_tensors_to_one_file=True, location=_DATA,
        size_threshold=_INLINE_BYTES,
    )  # fmt: skip
