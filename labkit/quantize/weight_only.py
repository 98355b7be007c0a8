"""Weights of an exported graph in 8 or 4 bits, in blocks, behind ONNX Runtime's MatMulNBits.

Each block of inputs has a scale of its own. Whether activations are rounded too is the kernel's business: at accuracy
level 4 it multiplies in INT8, with a scale for each block of a row's activations, and at level 1 in float32. A row's
numbers do not depend on what else is in its batch. Layers may be left in float32 and, at 4 bits, put in 8:
`labkit recipe search` chooses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.quantize.blocks import Algorithm, quantize_blocks
from labkit.quantize.layers import LayerList, layer_of, layers_of, numbers_in
from labkit.quantize.observing import Feed, Tell, grams
from labkit.quantize.onnx_files import constant_products, count_layers, left_alone, save, take_weight
from labkit.spec import Option

if TYPE_CHECKING:
    import onnx

_COMMON: Mapping[str, tuple[Option, ...]] = {
    "accuracy_level": (4, 1),  # 4 multiplies in INT8, 1 in float32
    "sentences": (100, 50, 200),  # that gptq is calibrated on
    "quantize_heads": (False, True),
    "fp32_layers": LayerList(),  # left as they are
}
INT8_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": (32, 16, 64, 128),
    "symmetric": (True, False),  # no zero points
    "algorithm": ("rtn", "gptq"),
    **_COMMON,
}
"""Build options at 8 bits with the values they may take, the default first."""
INT4_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "block_size": (32, 16, 64, 128),
    "symmetric": (False, True),
    "algorithm": ("rtn", "hqq", "gptq"),
    "int8_layers": LayerList(),  # as `int8-weight` has them, in blocks of this size
    **_COMMON,
}
"""Build options at 4 bits."""
_DOMAIN = "com.microsoft"
_ALGORITHMS: Mapping[str, Algorithm] = {"rtn": "rtn", "hqq": "hqq", "gptq": "gptq"}


def check_options(options: Mapping[str, Option]) -> None:
    """SpecError for options that contradict each other; `options` are complete."""
    if options["algorithm"] == "hqq" and options["symmetric"]:
        raise SpecError("options algorithm: hqq and symmetric: true contradict each other; drop symmetric.")
    exact, wider = (numbers_in(name, options.get(name, "")) for name in ("fp32_layers", "int8_layers"))
    if twice := sorted(exact & wider):
        raise SpecError(f"options fp32_layers and int8_layers both name layer {twice[0]}; keep it in one.")


def check_block(block: int, widths: Mapping[str, int]) -> None:
    """SpecError for a block size that does not divide a width; `widths`: how many inputs each product has, by name."""
    for name, inputs in widths.items():
        if inputs % block:
            fitting = [size for size in (128, 64, 32, 16) if not any(each % size for each in widths.values())]
            remedy = f"choose {', '.join(map(str, fitting))}" if fitting else "choose int8-dynamic"
            raise SpecError(
                f"block_size {block} does not divide the {inputs} inputs of {name}; {remedy} for this voice."
            )


def quantize_weights(
    source: Path,
    folder: Path,
    model: str,
    heads: str,
    bits: int,
    options: Mapping[str, Option],
    feeds: Iterable[Feed] = (),
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Quantize the weights of `source/model` into `folder`; returns what the manifest records.

    `options` are complete; `heads` names the product that is left alone unless `quantize_heads` is set; `feeds`,
    complete inputs of the graph, are read for `algorithm: gptq` alone. SpecError for a block size that does not divide
    the inputs of a product, for a layer that is not there, and for options that contradict each other.
    """
    import onnx

    check_options(options)
    algorithm = options["algorithm"]
    graph = onnx.load(source / model)
    excluded = left_alone(graph, heads, options)
    wider = layers_of("int8_layers", options.get("int8_layers", ""), count_layers(graph))
    products = constant_products(graph, excluded)
    inputs_of = {tensor.name: tensor.dims[0] for tensor in graph.graph.initializer if tensor.dims}
    check_block(int(options["block_size"]), {node.name: inputs_of[node.input[1]] for node in products})
    inputs = (node.input[0] for node in products)
    seen = grams(source / model, inputs, feeds, tell) if algorithm == "gptq" else {}
    in_8_bits = {**options, "symmetric": INT8_OPTIONS["symmetric"][0]}
    in_8_bits["algorithm"] = "gptq" if algorithm == "gptq" else "rtn"
    for node in products:
        tell(f"rounding {node.name}")
        weight, gram = take_weight(graph, node.input[1]), seen.pop(node.input[0], None)
        replacement, tensors = (
            _in_blocks(node, weight, gram, 8, in_8_bits)
            if layer_of(node.name) in wider
            else _in_blocks(node, weight, gram, bits, options)
        )
        graph.graph.initializer.extend(tensors)
        node.CopyFrom(replacement)
    save(graph, folder / model)
    counts = {"quantized_nodes": len(products), "excluded_nodes": excluded, "bits": bits}
    return {"tool": "labkit", **counts, **options}


def _in_blocks(
    node: onnx.NodeProto,
    weight: NDArray[np.float32],
    gram: NDArray[np.float32] | None,
    bits: int,
    options: Mapping[str, Option],
) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    """The node that multiplies by blocks of `weight` [K, N], and its tensors."""
    import onnx

    block = int(options["block_size"])
    blocks = quantize_blocks(
        weight, bits=bits, block=block, symmetric=bool(options["symmetric"]), gram=gram,
        algorithm=_ALGORITHMS[str(options["algorithm"])],
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
