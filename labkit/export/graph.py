"""Build an ONNX graph node by node, with its large tensors streamed to one file beside it.

It knows the file format and no network. A tensor is written when it is given, so that a graph of hundreds of
megabytes is made without holding a second copy of its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 18
IR_VERSION = 10
MICROSOFT = "com.microsoft"
DATA_FILE = "weights.bin"
INLINE_BYTES = 1024
_ALIGNMENT = 4096  # pages, so that a runtime can map the tensors where they lie

Shape = Sequence[int | str]


class GraphWriter:
    """Collect nodes and tensors, then `save`. Use as a context manager: it holds the open data file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = (folder / DATA_FILE).open("wb")
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._data.close()

    def input(self, name: str, dtype: int, shape: Shape) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name: str, dtype: int, shape: Shape) -> str:
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def tensor(self, name: str, array: NDArray[Any]) -> str:
        """Add a constant; the array is written out and not kept."""
        array = np.asarray(array, order="C")  # a scalar stays one
        if array.nbytes <= INLINE_BYTES:
            self._tensors.append(numpy_helper.from_array(array, name))
            return name
        self._data.write(b"\0" * (-self._data.tell() % _ALIGNMENT))
        place = {"location": DATA_FILE, "offset": str(self._data.tell()), "length": str(array.nbytes)}
        proto = TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            dims=array.shape,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in place.items():
            proto.external_data.add(key=key, value=value)
        self._data.write(array.data)
        self._tensors.append(proto)
        return name

    def node(
        self, op: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
    ) -> str:
        """Add a node and return the name of its first output; the node is named after it."""
        self._nodes.append(
            helper.make_node(op, inputs, outputs, name=f"{outputs[0]}.{op}", domain=domain, **attributes)
        )
        return outputs[0]

    def save(self, file: str, name: str) -> Path:
        """Write the model and return its path."""
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._tensors)
        domains = sorted({node.domain for node in self._nodes})
        opsets = [helper.make_opsetid(domain, 1 if domain else OPSET) for domain in domains]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="labkit")
        path = self.folder / file
        path.write_bytes(model.SerializeToString())
        self._data.flush()
        return path


def weight_bytes(model: Path, except_for: str) -> int:
    """Bytes of a saved graph's constants, without those whose name begins with `except_for`."""
    graph = onnx.load(model, load_external_data=False).graph
    return sum(_nbytes(tensor) for tensor in graph.initializer if not tensor.name.startswith(except_for))


def _nbytes(tensor: TensorProto) -> int:
    for entry in tensor.external_data:
        if entry.key == "length":
            return int(entry.value)
    return numpy_helper.to_array(tensor).nbytes
