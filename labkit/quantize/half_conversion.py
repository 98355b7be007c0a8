"""The conversion of a graph to float16, with chosen nodes left in float32. It knows types and no numbers.

It is our own: the conversions of ONNX Runtime and onnxconverter-common write every result of a kept node as float16
before the next kept node reads it, which is where it overflows, and need shape inference, which ONNX Runtime's fused
operators do not have. Here a tensor has the type of the node that makes it, and a cast stands where a reader differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

LARGEST = float(np.finfo(np.float16).max)
_CACHE = ("past_", "present_")
"""How the names begin of what crosses the graph's border and stays inside the stage: it becomes float16."""


def lift_constants(model: onnx.ModelProto) -> None:
    """Turn float Constant nodes into tensors of the graph, so that each reader gets them in its own type."""
    import onnx

    lifted = [
        node
        for node in model.graph.node
        if node.op_type == "Constant"
        and node.attribute[0].name == "value"
        and node.attribute[0].t.data_type == onnx.TensorProto.FLOAT
    ]
    for node in lifted:
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(node.attribute[0].t)
        tensor.name = node.output[0]
        model.graph.node.remove(node)


def convert(model: onnx.ModelProto, floats: set[str], kept: set[str]) -> None:
    """Make everything float16 in place, but the nodes `kept` and the arrays at the graph's border.

    `floats`: the float32 tensors that nodes make.
    """
    _Conversion(model, floats, kept).run()


class _Conversion:
    def __init__(self, model: onnx.ModelProto, floats: set[str], kept: set[str]) -> None:
        import onnx

        self.onnx, self.graph, self.kept = onnx, model.graph, kept
        self.float, self.half = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16
        self.weights = {t.name: t for t in self.graph.initializer if t.data_type == self.float}
        self.type_of = {
            name: self.wanted(node) for node in self.graph.node for name in node.output if name in floats
        }
        self.nodes: list[onnx.NodeProto] = []
        self.casts: set[str] = set()
        self.tensors: dict[str, onnx.TensorProto] = {}

    def wanted(self, node: onnx.NodeProto) -> int:
        return self.float if node.name in self.kept else self.half

    def run(self) -> None:
        self.settle_border()
        for node in self.graph.node:
            wanted = self.wanted(node)
            for place, name in enumerate(node.input):
                node.input[place] = self.as_type(name, wanted)
            if wanted == self.half:
                self.retype(node)
            self.nodes.append(node)
        for name, value in self.outputs.items():
            self.cast(value, name, self.float if name not in self.half_border else self.half)
        others = [t for t in self.graph.initializer if t.name not in self.weights]
        nodes = [self.onnx.NodeProto.FromString(node.SerializeToString()) for node in self.nodes]
        tensors = [self.onnx.TensorProto.FromString(t.SerializeToString()) for t in others]
        del self.graph.node[:], self.graph.initializer[:], self.graph.value_info[:]
        self.graph.node.extend(nodes)
        self.graph.initializer.extend([*tensors, *self.tensors.values()])

    def settle_border(self) -> None:
        """Types of inputs and outputs; an output whose maker has another type gets a name for what is made."""
        border = [
            v for v in (*self.graph.input, *self.graph.output) if v.type.tensor_type.elem_type == self.float
        ]
        self.half_border = {value.name for value in border if value.name.startswith(_CACHE)}
        for value in border:
            if value.name in self.half_border:
                value.type.tensor_type.elem_type = self.half
        for value in self.graph.input:
            if value.type.tensor_type.elem_type in (self.float, self.half):
                self.type_of[value.name] = value.type.tensor_type.elem_type
        self.outputs = {
            value.name: f"{value.name}.made"
            for value in self.graph.output
            if value.name in self.type_of and self.type_of[value.name] != value.type.tensor_type.elem_type
        }
        for node in self.graph.node:
            for names in (node.input, node.output):
                for place, name in enumerate(names):
                    names[place] = self.outputs.get(name, name)
        for name, made in self.outputs.items():
            self.type_of[made] = self.type_of.pop(name)

    def as_type(self, name: str, wanted: int) -> str:
        """The name under which a node reads a tensor in the wanted type."""
        if name in self.weights:
            return self.weight(name, wanted)
        if self.type_of.get(name, wanted) == wanted:
            return name
        target = f"{name}.{'half' if wanted == self.half else 'float'}"
        if target not in self.casts:
            self.casts.add(target)
            self.cast(name, target, wanted)
        return target

    def cast(self, name: str, target: str, wanted: int) -> None:
        self.nodes.append(
            self.onnx.helper.make_node("Cast", [name], [target], name=f"{target}.Cast", to=wanted)
        )

    def weight(self, name: str, wanted: int) -> str:
        target = name if wanted == self.float else f"{name}.half"
        if target not in self.tensors:
            array = self.onnx.numpy_helper.to_array(self.weights[name])
            if wanted == self.half:
                array = np.clip(array, -LARGEST, LARGEST).astype(np.float16)
            self.tensors[target] = self.onnx.numpy_helper.from_array(array, target)
        return target

    def retype(self, node: onnx.NodeProto) -> None:
        """Attributes that fix a type: where a cast goes, what a constant is filled with."""
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == self.float:
                attribute.i = self.half
            elif node.op_type == "ConstantOfShape" and attribute.t.data_type == self.float:
                array = self.onnx.numpy_helper.to_array(attribute.t).astype(np.float16)
                attribute.t.CopyFrom(self.onnx.numpy_helper.from_array(array))
