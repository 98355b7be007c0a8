"""Dynamic INT8 of an exported GPT: INT8 weights on disk, activations quantized as they come.

The activations of one product share one scale, over all rows and positions of the batch: unlike at other precisions,
what else is in a batch changes a row's numbers a little.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.quantize.onnx_files import save
from labkit.spec import Option

OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "per_channel": (True, False),  # one weight scale for each output instead of one for the whole matrix
    "quantize_heads": (False, True),
    "reduce_range": (False, True),  # 7-bit weights, for CPUs whose INT8 products saturate (AVX2 without VNNI)
}
"""Build options with the values they may take, the default first."""


def quantize_dynamic(
    source: Path, folder: Path, model: str, head_node: str, options: Mapping[str, Option]
) -> dict[str, Any]:
    """Quantize `source/model` into `folder`; returns what the manifest records.

    `options` are complete; `head_node` names the product that is left alone unless `quantize_heads` is set.
    """
    import onnx
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as ort_quantize_dynamic

    excluded = [] if options["quantize_heads"] else [head_node]
    target = folder / model
    with _without_advice():
        ort_quantize_dynamic(
            str(source / model),
            str(target),
            op_types_to_quantize=["MatMul"],
            per_channel=bool(options["per_channel"]),
            reduce_range=bool(options["reduce_range"]),
            weight_type=QuantType.QInt8,
            nodes_to_exclude=excluded,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT},
        )
    quantized = onnx.load(target)
    target.unlink()
    save(quantized, target)
    products = [node for node in quantized.graph.node if node.op_type == "MatMulInteger"]
    return {"quantized_nodes": len(products), "excluded_nodes": excluded}


@contextmanager
def _without_advice() -> Iterator[None]:
    """The quantizer advises a pre-processing that this graph, already fused, has no use for."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)
