"""Nodes that multiply activations of 16 bits by INT8 weights: two INT8 terms, one for what the other left over.

x is about (q1 + q2 / 254) * scale with whole q1 and q2 in -127..127: q2 is the rounding error of q1, which is at most
half a step, in steps 254 times finer. Both terms go through one integer product as two rows, so the weights are read
once: where reading them is what takes the time, the second term is free. Knows nodes and no model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.spec import Option

WHERE: tuple[Option, ...] = ("all", "down", "none")
"""Which products get two terms. `down` buys half of it for a quarter of the nodes: the inputs of `down` are products
themselves, silu(gate) * up; now and then one is thirty times larger than most, and a range that holds it leaves the
others few levels."""
LARGEST = 127
FINER = 254
"""How many steps of the second term make one of the first."""
MIDDLE = 128  # codes are unsigned around it, which is what the CPU's integer dot products take
_FUSED = ("DynamicQuantizeMatMul", "MatMulIntegerToFloat")
_SMALLEST = 1e-30  # a row of zeros has some range, so that nothing is divided by zero


def has_two_terms(product: str, where: Option) -> bool:
    """Whether a product of the exported GPT, by the name of its node, is among `where`."""
    return where == "all" or (where == "down" and product.endswith(".down.MatMul"))


class NodeList:
    """Nodes in order and the tensors they read; their names begin with `prefix`."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []

    def tensor(self, name: str, values: NDArray[Any] | np.generic) -> str:
        import onnx

        named = f"{self.prefix}.{name}"
        self.tensors.append(onnx.numpy_helper.from_array(np.asarray(values), named))
        return named

    def node(self, op: str, given: list[str], *out: str, last: str = "", **attributes: Any) -> str:
        """Add a node whose outputs are `out` under the prefix, or `last` as it stands; returns the first."""
        import onnx

        outputs = [last] if last else [f"{self.prefix}.{each}" for each in out]
        domain = "com.microsoft" if op in _FUSED else ""
        self.nodes.append(
            onnx.helper.make_node(op, given, outputs, name=f"{outputs[0]}.{op}", domain=domain, **attributes)
        )
        return outputs[0]


def dynamic_product(
    name: str, given: str, out: str, codes: NDArray[np.int8], scales: NDArray[np.float32]
) -> NodeList:
    """`out` = `given` [..., K] times codes [K, N] * scales; each row's range is the largest magnitude in it."""
    made = NodeList(name)
    step = made.tensor("step", np.float32(1 / LARGEST))
    size = made.node("Abs", [given], "size")
    largest = made.node("ReduceMax", [size, made.tensor("last", np.array([-1]))], "largest", keepdims=1)
    scale = made.node("Max", [largest, made.tensor("smallest", np.float32(_SMALLEST))], "range")
    unit = made.node("Div", [given, scale], "unit")
    terms = _terms(made, unit, step, np.float32(1 / LARGEST))
    weights = [made.tensor("codes", codes), step, made.tensor("scales", scales), f"{name}.middle"]
    both = made.node("MatMulIntegerToFloat", [terms, *weights], "both")
    made.node("Mul", [_sum(made, both, "sum"), scale], last=out)
    return made


def static_product(
    name: str, given: str, out: str, codes: NDArray[np.int8], scales: NDArray[np.float32], largest: float
) -> NodeList:
    """As `dynamic_product` for inputs within -largest..largest, in standard operators that runtimes fuse."""
    made = NodeList(name)
    unit = np.float32(max(largest, _SMALLEST) / LARGEST)
    step = made.tensor("step", unit)
    terms = _terms(made, given, step, unit)
    left = made.node("DequantizeLinear", [terms, step, f"{name}.middle"], "restored")
    zeros = made.tensor("zeros", np.zeros(len(scales), np.int8))
    weights = [made.tensor("codes", codes), made.tensor("scales", scales), zeros]
    right = made.node("DequantizeLinear", weights, "weights", axis=1)
    _sum(made, made.node("MatMul", [left, right], "both"), last=out)
    return made


def _terms(made: NodeList, x: str, step: str, unit: np.float32) -> str:
    """Both terms' codes, one after the other along the first axis."""
    middle = made.tensor("middle", np.uint8(MIDDLE))
    first = made.node("QuantizeLinear", [x, step, middle], "first")
    coarse = made.node("DequantizeLinear", [first, step, middle], "coarse")
    rest = made.node("Sub", [x, coarse], "rest")
    finer = made.tensor("finer", np.float32(unit / FINER))
    second = made.node("QuantizeLinear", [rest, finer, middle], "second")
    return made.node("Concat", [first, second], "terms", axis=0)


def _sum(made: NodeList, both: str, name: str = "", last: str = "") -> str:
    """Of products of both terms in steps of the first."""
    first = made.node("Split", [both], "of_first", "of_second", axis=0, num_outputs=2)
    share = made.tensor("share", np.float32(1 / FINER))
    second = made.node("Mul", [f"{made.prefix}.of_second", share], "scaled")
    return made.node("Add", [first, second], name, last=last)
