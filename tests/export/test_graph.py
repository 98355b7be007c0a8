from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto

from labkit.export.graph import GraphWriter, weight_bytes


def write(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    """x plus every array in turn."""
    with GraphWriter(folder) as graph:
        x = graph.input("x", TensorProto.FLOAT, ["rows", 300])
        for name, array in arrays.items():
            last = name == list(arrays)[-1]
            x = graph.node("Add", [x, graph.tensor(name, array)], ["y" if last else f"{name}.sum"])
        graph.output("y", TensorProto.FLOAT, ["rows", 300])
        return graph.save("model.onnx", "sums")


def test_tensors_come_back_as_they_went_in_large_or_small(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "large": rng.standard_normal((1, 300)).astype(np.float32),
        "transposed": rng.standard_normal((300, 1)).astype(np.float32).T,
        "small": rng.standard_normal((1, 1)).astype(np.float32),
        "last": rng.standard_normal((1, 300)).astype(np.float32),
    }
    path = write(tmp_path, arrays)
    onnx.checker.check_model(str(path), full_check=True)
    x = np.ones((2, 300), np.float32)
    found = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    np.testing.assert_allclose(found, x + sum(arrays.values()), atol=1e-5)


def test_large_tensors_lie_outside_and_on_pages(tmp_path: Path) -> None:
    arrays = {name: np.ones((1, 300), np.float32) for name in "ab"}
    path = write(tmp_path, arrays)
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    offsets = [
        int(entry.value) for tensor in tensors for entry in tensor.external_data if entry.key == "offset"
    ]
    assert offsets == [0, 4096]
    assert weight_bytes(path, except_for="z") == 2400
    assert weight_bytes(path, except_for="a") == 1200
