"""The pieces that both graphs of the GPT are built from, in standard operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from labkit.export.graph import GraphWriter

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]
_NORM_PARTS = ("square", "mean", "shifted", "root", "scaled")


def linear(graph: GraphWriter, x: str, weight: Tensor | Array, out: str) -> str:
    """x [..., in] times weight [out, in] transposed."""
    array = weight if isinstance(weight, np.ndarray) else as_numpy(weight)
    graph.tensor(f"{out}.weight", array.T)
    return graph.node("MatMul", [x, f"{out}.weight"], [out])


def rms_norm(graph: GraphWriter, x: str, weight: Tensor, eps: float, prefix: str, out: str) -> str:
    """x / sqrt(mean(x ** 2) + eps) * weight; the nodes are named `prefix`.something. Opset 18 has no such operator."""
    # `_NORM_PARTS` lists these names
    square = graph.node("Mul", [x, x], [f"{prefix}.square"])
    axes = graph.tensor(f"{prefix}.axes", np.array([-1]))
    mean = graph.node("ReduceMean", [square, axes], [f"{prefix}.mean"], keepdims=1)
    epsilon = graph.tensor(f"{prefix}.eps", np.array(eps, np.float32))
    root = graph.node("Sqrt", [graph.node("Add", [mean, epsilon], [f"{prefix}.shifted"])], [f"{prefix}.root"])
    scaled = graph.node("Div", [x, root], [f"{prefix}.scaled"])
    return graph.node("Mul", [scaled, graph.tensor(f"{prefix}.weight", as_numpy(weight))], [out])


def is_part_of_a_norm(node: str) -> bool:
    """Whether a node's name is one that `rms_norm` gives between its input and the last product."""
    return node.split(".")[-2:-1] in [[part] for part in _NORM_PARTS]


def as_numpy(tensor: Tensor) -> Array:
    """A copy-free float32 view where the tensor allows it."""
    array: Array = tensor.detach().float().cpu().numpy()
    return array
