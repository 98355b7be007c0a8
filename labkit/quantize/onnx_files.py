"""What the transforms of exported graphs share: finding the products that have weights, and writing a changed graph."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

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


def save(model: onnx.ModelProto, target: Path) -> None:
    """Write the graph to `target` and its tensors, if any is large, to one file beside it."""
    import onnx

    onnx.save_model(
        model, str(target), save_as_external_data=True, all_tensors_to_one_file=True, location=_DATA,
        size_threshold=_INLINE_BYTES,
    )  # fmt: skip
