"""Dynamic INT8 of an exported graph: INT8 weights on disk, activations quantized as they come.

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

NETWORK_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "per_channel": (True, False),  # one weight scale for each output instead of one for the whole matrix
    "reduce_range": (False, True),  # 7-bit weights, for CPUs whose INT8 products saturate (AVX2 without VNNI)
}
"""Build options of decoder and vocoder with the values they may take, the default first."""
OPTIONS: Mapping[str, tuple[Option, ...]] = {**NETWORK_OPTIONS, "quantize_heads": (False, True)}
"""Build options of the GPT."""


def quantize_dynamic(
    source: Path, folder: Path, model: str, heads: str, options: Mapping[str, Option]
) -> dict[str, Any]:
    """Quantize the constant matrix products of `source/model` into `folder`; returns what the manifest records.

    `options` are complete; `heads` names the product that is left alone unless `quantize_heads` is there and set, or
    is empty. Convolutions stay as they are.
    """
    import onnx
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as ort_quantize_dynamic

    excluded = [] if options.get("quantize_heads") or not heads else [heads]
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
