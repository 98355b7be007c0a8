"""Static INT8 of an exported graph: weights and activations as integers, activation ranges fixed by calibration.

QuantizeLinear and DequantizeLinear stand around each product, which ONNX Runtime fuses into integer products. Weights
are symmetric, a scale for each output; activations are symmetric too, one range a product, with 8 bits or with 16
(`labkit.quantize.two_terms`). A row's numbers do not depend on what else is in its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.quantize.channels import quantize_channels
from labkit.quantize.feedback import GramCollector
from labkit.quantize.layers import LayerList
from labkit.quantize.observing import Feed, Tell, observe
from labkit.quantize.onnx_files import constant_products, left_alone, replace_nodes, save, take_weight
from labkit.quantize.ranges import CALIBRATORS, RangeFinder, range_finder
from labkit.quantize.two_terms import LARGEST, MIDDLE, NodeList, has_two_terms, static_product
from labkit.spec import Option

Ranges = dict[str, float]
Grams = dict[str, NDArray[np.float32]]

OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "wide_activations": ("all", "down", "none"),  # the products whose activations have 16 bits
    "algorithm": ("gptq", "rtn"),
    "calibration": ("max", "percentile", "mse", "entropy"),
    "calibrator": CALIBRATORS,
    "sentences": (100, 50, 200),
    "quantize_heads": (False, True),
    "fp32_layers": LayerList(),
}
"""Build options with the values they may take, the default first. 16 bits have levels enough for the largest magnitude;
8 bits do better with `calibration: percentile`."""


def collect(
    model: Path, tensors: Iterable[str], feeds: Iterable[Feed], finder: Callable[[], RangeFinder], tell: Tell,
    with_grams: bool = False,
) -> tuple[Ranges, Grams]:  # fmt: skip
    """The range (`amax`) of each of the graph's `tensors` over all feeds and, if asked for, its Gram matrix.

    CalibrationError when there is no feed, or a tensor is not finite for one.
    """
    names = sorted(set(tensors))
    finders = {name: finder() for name in names}
    products = {name: GramCollector() for name in names if with_grams}
    observers = {name: (finders[name], products[name]) if with_grams else (finders[name],) for name in names}
    observe(model, observers, feeds, tell)
    ranges = {name: each.amax() for name, each in finders.items()}
    return ranges, {name: collector.gram() for name, collector in products.items()}


def quantize_static(
    source: Path, folder: Path, model: str, heads: str, feeds: Iterable[Feed], options: Mapping[str, Option],
    tell: Tell,
) -> dict[str, Any]:  # fmt: skip
    """Quantize the products of `source/model` into `folder`; returns what the manifest records.

    `feeds`: complete inputs of the graph. `options` are complete; `heads` names the product that is left alone unless
    `quantize_heads` is set. SpecError for a calibrator that is not installed, before any work.
    """
    import onnx

    calibrator, method = str(options["calibrator"]), str(options["calibration"])
    finder = range_finder(calibrator, method)
    graph = onnx.load(source / model)
    excluded = left_alone(graph, heads, options)
    products = constant_products(graph, excluded)
    ranges, seen = collect(
        source / model, (node.input[0] for node in products), feeds, finder, tell,
        with_grams=options["algorithm"] == "gptq",
    )  # fmt: skip
    replaced = {}
    for node in products:
        tell(f"rounding {node.name}")
        given, out = node.input[0], node.output[0]
        codes, scales = quantize_channels(take_weight(graph, node.input[1]), gram=seen.pop(given, None))
        is_wide = has_two_terms(node.name, options["wide_activations"])
        product = static_product if is_wide else _narrow_product
        made = product(out, given, out, codes, scales, ranges[given])
        graph.graph.initializer.extend(made.tensors)
        replaced[node.name] = made.nodes
    replace_nodes(graph, replaced)
    save(graph, folder / model)
    counts = {"quantized_nodes": len(products), "excluded_nodes": excluded}
    return {"tool": calibrator, **counts, "ranges": ranges, **options}


def _narrow_product(
    name: str, given: str, out: str, codes: NDArray[np.int8], scales: NDArray[np.float32], largest: float
) -> NodeList:
    """`out` = `given` times codes [K, N] * scales; what exceeds `largest` is clipped."""
    made = NodeList(name)
    step = made.tensor("step", np.float32(max(largest, 1e-30) / LARGEST))
    middle = made.tensor("middle", np.uint8(MIDDLE))
    zeros = made.tensor("zeros", np.zeros(len(scales), np.int8))
    coded = made.node("QuantizeLinear", [given, step, middle], "coded")
    left = made.node("DequantizeLinear", [coded, step, middle], "restored")
    weights = [made.tensor("codes", codes), made.tensor("scales", scales), zeros]
    right = made.node("DequantizeLinear", weights, "weights", axis=1)
    made.node("MatMul", [left, right], last=out)
    return made
