"""Weights of an exported graph in 8 or 4 bits, in blocks, behind ONNX Runtime's MatMulNBits.

Each block of inputs has a scale of its own. Whether activations are rounded too is the kernel's business: at accuracy
level 4 it multiplies in INT8, with a scale for each block of a row's activations, and at level 1 in float32. A row's
numbers do not depend on what else is in its batch. Layers may be left in float32 and, at 4 bits, put in 8:
`labkit recipe search` chooses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import SpecError
from labkit.quantize.blocks import quantize_blocks
from labkit.quantize.layers import LayerList, layer_of, layers_of
from labkit.quantize.onnx_files import constant_products, save
from labkit.spec import Option

if TYPE_CHECKING:
    import onnx

_COMMON: Mapping[str, tuple[Option, ...]] = {
    "accuracy_level": (4, 1),  # 4 multiplies in INT8, 1 in float32
    "quantize_heads": (False, True),
    "fp32_layers": LayerList(),  # left as they are
}
INT8_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": (32, 64, 128),
    "symmetric": (True, False),  # no zero points
    **_COMMON,
}
"""Build options at 8 bits with the values they may take, the default first."""
INT4_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": (32, 64, 128),
    "symmetric": (False, True),
    "algorithm": ("rtn", "hqq"),
    "int8_layers": LayerList(),  # as `int8-weight` has them, in blocks of this size
    **_COMMON,
}
"""Build options at 4 bits."""
_DOMAIN = "com.microsoft"


def quantize_weights(
    source: Path, folder: Path, model: str, heads: str, bits: int, options: Mapping[str, Option]
) -> dict[str, Any]:
    """Quantize the weights of `source/model` into `folder`; returns what the manifest records.

    `options` are complete; `heads` names the product that is left alone unless `quantize_heads` is set. SpecError for
    a block size that does not divide the inputs of a product, for a layer that is not there, and for options that
    contradict each other.
    """
    import onnx

    algorithm, symmetric = str(options.get("algorithm", "rtn")), bool(options["symmetric"])
    if algorithm == "hqq" and symmetric:
        raise SpecError("options algorithm: hqq and symmetric: true contradict each other; drop symmetric.")
    graph = onnx.load(source / model)
    weights = {tensor.name: tensor for tensor in graph.graph.initializer}
    exact, wider = _layers_apart(constant_products(graph, []), options)
    excluded = [node.name for node in constant_products(graph, []) if layer_of(node.name) in exact]
    excluded += [] if options["quantize_heads"] else [heads]
    products = constant_products(graph, excluded)
    _require_division(products, weights, int(options["block_size"]))
    in_8_bits = {**options, "symmetric": INT8_OPTIONS["symmetric"][0], "algorithm": "rtn"}
    for node in products:
        weight = onnx.numpy_helper.to_array(weights[node.input[1]])
        is_wider = layer_of(node.name) in wider
        replacement, tensors = (
            _in_blocks(node, weight, 8, in_8_bits) if is_wider else _in_blocks(node, weight, bits, options)
        )
        graph.graph.initializer.remove(weights.pop(node.input[1]))
        graph.graph.initializer.extend(tensors)
        node.CopyFrom(replacement)
    save(graph, folder / model)
    return {"quantized_nodes": len(products), "excluded_nodes": excluded, "bits": bits, **options}


def _layers_apart(
    products: list[onnx.NodeProto], options: Mapping[str, Option]
) -> tuple[frozenset[int], frozenset[int]]:
    """The layers that stay in float32, and those in 8 bits among others in 4."""
    layers = 1 + max(layer for node in products if (layer := layer_of(node.name)) is not None)
    exact, wider = (layers_of(name, options.get(name, ""), layers) for name in ("fp32_layers", "int8_layers"))
    if twice := sorted(exact & wider):
        raise SpecError(f"options fp32_layers and int8_layers both name layer {twice[0]}; keep it in one.")
    return exact, wider


def _require_division(
    products: list[onnx.NodeProto], weights: Mapping[str, onnx.TensorProto], block: int
) -> None:
    for node in products:
        inputs = weights[node.input[1]].dims[0]
        if inputs % block:
            fitting = [size for size in (128, 64, 32) if inputs % size == 0]
            remedy = f"choose {', '.join(map(str, fitting))}" if fitting else "choose int8-dynamic"
            raise SpecError(
                f"block_size {block} does not divide the {inputs} inputs of {node.name}; {remedy} for this voice."
            )


def _in_blocks(
    node: onnx.NodeProto, weight: np.ndarray[Any, Any], bits: int, options: Mapping[str, Option]
) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """The node that multiplies by blocks of `weight` [K, N], and its tensors."""
    import onnx

    block = int(options["block_size"])
    blocks = quantize_blocks(
        weight, bits=bits, block=block, symmetric=bool(options["symmetric"]),
        algorithm="hqq" if options.get("algorithm") == "hqq" else "rtn",
    )  # fmt: skip
    named = dict(zip(("blocks", "scales", "zeros"), blocks.packed(), strict=True))
    tensors = [
        onnx.numpy_helper.from_array(array, f"{node.input[1]}.{name}")
        for name, array in named.items()
        if array is not None
    ]
    made = onnx.helper.make_node(
        "MatMulNBits",
        [node.input[0], *(tensor.name for tensor in tensors)],
        list(node.output),
        name=node.name,
        domain=_DOMAIN,
        K=weight.shape[0],
        N=weight.shape[1],
        bits=bits,
        block_size=block,
        accuracy_level=int(options["accuracy_level"]),
    )
    return made, tensors
