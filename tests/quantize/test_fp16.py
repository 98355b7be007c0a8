from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from labkit.errors import ArtifactError, CalibrationError
from labkit.quantize.half import differences, halve, magnitudes
from labkit.quantize.sessions import open_session

MODEL = "small.onnx"


def write(folder: Path, growth: float) -> Path:
    """x [rows, 4] -> grown by a product, shrunk by the next, both kept in y; and a cache that grows by x."""
    rng = np.random.default_rng(0)
    tensors = {
        "grow": rng.uniform(1, 2, (4, 4)).astype(np.float32) * growth,
        "shrink": rng.uniform(1, 2, (4, 4)).astype(np.float32) / growth,
    }
    nodes = [
        helper.make_node("MatMul", ["x", "grow"], ["large"], name="large.MatMul"),
        helper.make_node("Relu", ["large"], ["still_large"], name="still_large.Relu"),
        helper.make_node("MatMul", ["still_large", "shrink"], ["small"], name="small.MatMul"),
        helper.make_node("Constant", [], ["half"], name="half.Constant",
                         value=numpy_helper.from_array(np.array(0.5, np.float32))),
        helper.make_node("Mul", ["small", "half"], ["y"], name="y.Mul"),
        helper.make_node("Concat", ["past_0", "x"], ["present_0"], name="present.Concat", axis=0),
        helper.make_node("Shape", ["y"], ["shape"], name="shape.Shape"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4]),
         helper.make_tensor_value_info("past_0", TensorProto.FLOAT, ["past", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 4]),
         helper.make_tensor_value_info("present_0", TensorProto.FLOAT, ["all", 4]),
         helper.make_tensor_value_info("shape", TensorProto.INT64, [2])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save_model(model, str(folder / MODEL))
    return folder


def feeds() -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    for rows in (1, 3):
        yield {"x": rng.uniform(0.5, 1, (rows, 4)).astype(np.float32), "past_0": np.zeros((2, 4), np.float32)}


def convert(
    tmp_path: Path, growth: float, keep: dict[str, str] | None = None
) -> tuple[dict, onnx.ModelProto]:
    source, folder = tmp_path / "exact", tmp_path / "half"
    source.mkdir()
    folder.mkdir()
    details = halve(write(source, growth), folder, MODEL, feeds, keep or {}, lambda line: None)
    onnx.checker.check_model(str(folder / MODEL), full_check=True)
    return details, onnx.load(folder / MODEL)


def types(model: onnx.ModelProto) -> dict[str, int]:
    return {v.name: v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)}


def test_what_crosses_the_border_keeps_its_type_and_the_cache_is_halved(tmp_path: Path) -> None:
    details, model = convert(tmp_path, growth=1.0)
    assert types(model) == {
        "x": TensorProto.FLOAT, "past_0": TensorProto.FLOAT16, "y": TensorProto.FLOAT,
        "present_0": TensorProto.FLOAT16, "shape": TensorProto.INT64,
    }  # fmt: skip
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.FLOAT16}
    assert details["kept_in_fp32"] == {}
    assert details["recorded_inputs"] == 2
    figures = details["against_fp32_on_recorded_inputs"]
    assert figures.keys() == {"y"}
    assert 0 < figures["y"]["max_abs"] < 0.05 and figures["y"]["least_cosine"] > 0.99999


def test_nodes_that_overflow_stay_exact_and_are_named(tmp_path: Path) -> None:
    details, model = convert(tmp_path, growth=1e5)
    assert details["kept_in_fp32"] == {"overflow": ["large.MatMul", "still_large.Relu", "small.MatMul"]}
    assert next(iter(details["largest_magnitudes"])) == "large"
    weights = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert weights["grow"] == weights["shrink"] == TensorProto.FLOAT
    assert details["against_fp32_on_recorded_inputs"]["y"]["least_cosine"] > 0.9999
    casts = [node.name for node in model.graph.node if node.op_type == "Cast"]
    assert not any("large" in name for name in casts), "kept nodes in a row pass float32 to each other"


def test_a_tensor_near_the_limit_is_kept_for_what_was_not_recorded(tmp_path: Path) -> None:
    for growth, kept in ((1e3, False), (1e4, True)):
        (folder := tmp_path / str(growth)).mkdir()
        details, _ = convert(folder, growth)
        assert details["largest_magnitudes"]["large"] < 65504
        assert bool(details["kept_in_fp32"]) == kept


def test_the_caller_keeps_what_it_likes(tmp_path: Path) -> None:
    details, model = convert(tmp_path, growth=1.0, keep={"y.Mul": "it is precious"})
    assert details["kept_in_fp32"] == {"it is precious": ["y.Mul"]}
    producer = next(node for node in model.graph.node if node.output[0] == "y")
    assert producer.op_type == "Mul"


def test_without_recordings_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="no recorded input"):
        halve(write(tmp_path, 1.0), tmp_path, MODEL, lambda: iter(()), {}, lambda line: None)


def test_what_is_not_finite_even_in_fp32_is_refused(tmp_path: Path) -> None:
    assert magnitudes(write(tmp_path, 1e38) / MODEL, feeds())["large"] == np.inf
    (folder := tmp_path / "half").mkdir()
    with pytest.raises(ArtifactError, match="y is not finite"):
        halve(tmp_path, folder, MODEL, feeds, {}, lambda line: None)


def test_differences_see_a_difference(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder, growth in zip(folders, (1.0, 2.0), strict=True):
        folder.mkdir()
        write(folder, growth)
    model = onnx.load(folders[1] / MODEL)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((4, 4), np.float32), "grow"))
    onnx.save_model(model, str(folders[1] / MODEL))
    figures = differences(folders[0] / MODEL, folders[1] / MODEL, feeds())
    assert figures["y"]["max_abs"] > 0.1
    assert figures["present_0"]["max_abs"] == 0


def test_any_tensor_can_be_looked_at(tmp_path: Path) -> None:
    session = open_session(write(tmp_path, 1.0) / MODEL, ["still_large", "shape"])
    values, shape = session.run(None, next(feeds()))
    assert values.shape == (1, 4)
    assert list(shape) == [1, 4]
