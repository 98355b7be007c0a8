"""fp8 of an exported graph, for other runtimes: weights as FLOAT8E4M3FN, activations rounded to it on the way in.

QuantizeLinear and DequantizeLinear stand around each product, as TensorRT reads them. Weights have a scale for each
output, activations one for the product, from the largest magnitude on recorded inputs: a floating format has levels to
spare for small numbers, so nothing is clipped. Nothing here runs it at any speed: it is for export only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labkit.quantize.half import magnitudes
from labkit.quantize.onnx_files import constant_products, save
from labkit.quantize.sessions import Feed

OPSET = 19
"""The first in which QuantizeLinear and DequantizeLinear know FLOAT8E4M3FN."""
_LARGEST = 448.0  # of E4M3FN


def quantize_fp8(
    source: Path, folder: Path, model: str, feeds: Iterable[Feed], keep: Mapping[str, str]
) -> dict[str, Any]:
    """Quantize the products of `source/model` that are not in `keep` (node -> reason) into `folder`.

    `feeds`: complete inputs of the graph. Returns what the manifest records.
    """
    import onnx

    graph = onnx.load(source / model)
    largest = magnitudes(source / model, feeds)
    products = {node.name: node for node in constant_products(graph, list(keep))}
    weights = {tensor.name: tensor for tensor in graph.graph.initializer}
    ranges = {name: largest[node.input[0]] for name, node in products.items()}
    nodes: list[onnx.NodeProto] = []
    for node in graph.graph.node:
        if node.name in products:
            given, weight = node.input
            array = onnx.numpy_helper.to_array(weights[weight])
            graph.graph.initializer.remove(weights[weight])
            graph.graph.initializer.extend(_tensors(node.name, weight, array, ranges[node.name]))
            nodes += _around(node.name, given, weight)
            node.input[:] = [f"{node.name}.restored", f"{weight}.restored"]
        nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.graph.node[:], graph.graph.value_info[:]
    graph.graph.node.extend(copies)
    for each in graph.opset_import:
        each.version = max(each.version, OPSET) if each.domain == "" else each.version
    save(graph, folder / model)
    return {
        "quantized_nodes": len(products),
        "kept_in_fp32": {
            why: [name for name in keep if keep[name] == why] for why in sorted(set(keep.values()))
        },
        "ranges": ranges,
        "format": "FLOAT8E4M3FN",
        "runs_here": "not runnable on CPU: no engine of the lab computes in fp8; ONNX Runtime's CPU provider only "
        "restores the rounded numbers to fp32, which is how its figures were taken.",
    }


def _tensors(node: str, weight: str, array: Any, largest: float) -> list[Any]:
    """Codes and scales of a weight [in, out], and scale and zero of the activation."""
    import ml_dtypes
    import onnx

    scales = np.maximum(np.abs(array).max(0), 1e-30).astype(np.float32) / np.float32(_LARGEST)
    float8 = ml_dtypes.float8_e4m3fn
    arrays = {
        f"{weight}.codes": np.clip(array / scales, -_LARGEST, _LARGEST).astype(float8),
        f"{weight}.scales": scales,
        f"{weight}.zero": np.zeros(len(scales), float8),
        f"{node}.scale": np.array(max(largest, 1e-30) / _LARGEST, np.float32),
        f"{node}.zero": np.zeros((), float8),
    }
    return [onnx.numpy_helper.from_array(values, name) for name, values in arrays.items()]


def _around(node: str, given: str, weight: str) -> list[Any]:
    import onnx

    def make(op: str, inputs: list[str], out: str, **attributes: Any) -> Any:
        return onnx.helper.make_node(op, inputs, [out], name=f"{out}.{op}", **attributes)

    zero, scale = f"{node}.zero", f"{node}.scale"
    return [
        make("QuantizeLinear", [given, scale, zero], f"{node}.coded"),
        make("DequantizeLinear", [f"{node}.coded", scale, zero], f"{node}.restored"),
        make(
            "DequantizeLinear",
            [f"{weight}.codes", f"{weight}.scales", f"{weight}.zero"],
            f"{weight}.restored",
            axis=1,
        ),
    ]
