"""Which nodes of an exported stage keep float32 whatever a precision does to the rest, and why."""

from __future__ import annotations

from pathlib import Path

import onnx

from labkit.export.gpt_onnx import HEAD_NODE
from labkit.export.networks_onnx import VOCODER_HEAD
from labkit.export.standard_nodes import is_part_of_a_norm
from labkit.spec import StageName


def kept_exact(stage: StageName, model: Path) -> dict[str, str]:
    """Node -> reason. The torch engine keeps the same parts in its bf16.

    Code heads decide between near ties. Squares that a norm sums overflow early and underflow as early. The vocoder's
    head gives a phase of many turns, which half precision holds to a tenth of one, and all after it is sound.
    """
    nodes = onnx.load(model, load_external_data=False).graph.node
    if stage == "gpt":
        norms = {node.name: "mean of squares" for node in nodes if is_part_of_a_norm(node.name)}
        return {HEAD_NODE: "code heads", **norms}
    if stage == "vocoder":
        return {name: "vocoder head and after" for name in _from(nodes, VOCODER_HEAD)}
    return {}


def _from(nodes: list[onnx.NodeProto], first: str) -> list[str]:
    """The names of the node whose name ends so, and of all that reads what it makes, directly or not."""
    reached: set[str] = set()
    names = []
    for node in nodes:
        if node.name.endswith(first) or reached.intersection(node.input):
            names.append(node.name)
            reached.update(node.output)
    return names
