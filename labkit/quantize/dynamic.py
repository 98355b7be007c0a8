"""Dynamic INT8 of an exported graph: INT8 weights on disk, activations quantized as they come.

Activations have 8 bits, with one range for all rows and positions of a batch, so that what else is in a batch changes a
row's numbers a little; or 16 bits in two terms (`labkit.quantize.two_terms`), with a range for each row. The graph of a
decoder or vocoder is made by ONNX Runtime's quantizer, that of the GPT here: by the same fused operator, but rounded
with feedback where asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.quantize.channels import quantize_channels
from labkit.quantize.layers import LayerList
from labkit.quantize.observing import Feed, Tell, grams
from labkit.quantize.onnx_files import constant_products, left_alone, replace_nodes, save, take_weight
from labkit.quantize.two_terms import WHERE, NodeList, dynamic_product, has_two_terms
from labkit.spec import Option

NETWORK_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "per_channel": (True, False),  # one weight scale for each output instead of one for the whole matrix
    "reduce_range": (False, True),  # 7-bit weights, for CPUs whose INT8 products saturate (AVX2 without VNNI)
}
"""Build options of decoder and vocoder with the values they may take, the default first."""
OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "wide_activations": WHERE,  # the products whose activations have 16 bits
    "algorithm": ("rtn", "gptq"),  # gptq is calibrated
    **NETWORK_OPTIONS,
    "sentences": (100, 50, 200),  # that gptq is calibrated on
    "quantize_heads": (False, True),
    "fp32_layers": LayerList(),
}
"""Build options of the GPT."""


def quantize_gpt_dynamic(
    source: Path,
    folder: Path,
    model: str,
    heads: str,
    options: Mapping[str, Option],
    feeds: Iterable[Feed],
    tell: Tell,
) -> dict[str, Any]:
    """Quantize the products of the GPT `source/model` into `folder`; returns what the manifest records.

    `options` are complete; `heads` names the product that is left alone unless `quantize_heads` is set; `feeds`,
    complete inputs of the graph, are read for `algorithm: gptq` alone.
    """
    import onnx

    graph = onnx.load(source / model)
    excluded = left_alone(graph, heads, options)
    products = constant_products(graph, excluded)
    inputs = (node.input[0] for node in products)
    seen = grams(source / model, inputs, feeds, tell) if options["algorithm"] == "gptq" else {}
    replaced = {}
    for node in products:
        tell(f"rounding {node.name}")
        given, out = node.input[0], node.output[0]
        codes, scales = quantize_channels(
            take_weight(graph, node.input[1]),
            gram=seen.pop(given, None),
            per_channel=bool(options["per_channel"]),
            top=63 if options["reduce_range"] else 127,
        )
        is_wide = has_two_terms(node.name, options["wide_activations"])
        made = (dynamic_product if is_wide else _narrow_product)(out, given, out, codes, scales)
        graph.graph.initializer.extend(made.tensors)
        replaced[node.name] = made.nodes
    replace_nodes(graph, replaced)
    save(graph, folder / model)
    return {"tool": "labkit", "quantized_nodes": len(products), "excluded_nodes": excluded, **options}


def _narrow_product(
    name: str, given: str, out: str, codes: NDArray[np.int8], scales: NDArray[np.float32]
) -> NodeList:
    """`out` = `given` times codes [K, N] * scales, `given` rounded to 8 bits over its whole range."""
    made = NodeList(name)
    weights = [made.tensor("codes", codes), made.tensor("scales", scales)]
    made.node("DynamicQuantizeMatMul", [given, *weights], last=out)
    return made


def quantize_network(
    source: Path, folder: Path, model: str, head: str, options: Mapping[str, Option]
) -> dict[str, Any]:
    """The same for the products of a decoder or vocoder, without its `head`, if it has one; convolutions stay."""
    import onnx
    from onnxruntime.quantization import QuantType
    from onnxruntime.quantization import quantize_dynamic as ort_quantize_dynamic

    excluded = [head] if head else []
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
    return {"tool": "onnxruntime", "quantized_nodes": len(products), "excluded_nodes": excluded, **options}


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
