"""Static INT8 of an exported graph: weights and activations as integers, activation ranges fixed by calibration.

QuantizeLinear and DequantizeLinear stand around each product, which ONNX Runtime fuses into integer products. Weights
are symmetric, a scale for each output; activations are symmetric too, one scale a product, as unsigned codes around
128, which is what the CPU's integer dot products take. A row's numbers do not depend on what else is in its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from labkit.errors import CalibrationError
from labkit.quantize.calibrators import HistogramCalibrator, MaxCalibrator, Method
from labkit.quantize.onnx_files import constant_products, save
from labkit.spec import Option

if TYPE_CHECKING:
    import onnx

Feed = Mapping[str, NDArray[Any]]
Ranges = dict[str, float]
Tell = Callable[[str], None]

OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "calibration": ("percentile", "max", "mse", "entropy"),
    "sentences": (100, 50, 200),
    "quantize_heads": (False, True),
}
"""Build options with the values they may take, the default first."""
_BITS = 8
_MIDDLE = 128


def collect_ranges(
    model: Path, tensors: Iterable[str], feeds: Iterable[Feed], method: str, tell: Tell
) -> Ranges:
    """The range (`amax`) of each of the graph's `tensors` over all feeds, one feed in memory at a time.

    CalibrationError when there is no feed, or a tensor is not finite for one.
    """
    names = sorted(set(tensors))
    session = _session_with_outputs(model, names)
    wanted = {value.name for value in session.get_inputs()}
    collectors: dict[str, MaxCalibrator | HistogramCalibrator] = {
        name: MaxCalibrator(_BITS, None, False)
        if method == "max"
        else HistogramCalibrator(_BITS, None, False)
        for name in names
    }
    count = 0
    for count, feed in enumerate(feeds, start=1):
        tell(f"calibrating on sentence {count}")
        seen = session.run(names, {name: feed[name] for name in wanted})
        for name, values in zip(names, seen, strict=True):
            try:
                collectors[name].collect(values)
            except ValueError as error:
                raise CalibrationError(f"calibration: {name} of sentence {count}: {error}") from error
    if not count:
        raise CalibrationError("calibration: there is no sentence to calibrate on.")
    return {name: _range(collector, method) for name, collector in collectors.items()}


def quantize_static(
    source: Path, folder: Path, model: str, heads: str, feeds: Iterable[Feed], options: Mapping[str, Option],
    tell: Tell,
) -> dict[str, Any]:  # fmt: skip
    """Quantize the products of `source/model` into `folder`; returns what the manifest records.

    `feeds`: complete inputs of the graph. `options` are complete; `heads` names the product that is left alone unless
    `quantize_heads` is set.
    """
    import onnx

    graph = onnx.load(source / model)
    excluded = [] if options["quantize_heads"] else [heads]
    products = constant_products(graph, excluded)
    method = str(options["calibration"])
    ranges = collect_ranges(source / model, (node.input[0] for node in products), feeds, method, tell)
    _insert(graph, products, ranges)
    save(graph, folder / model)
    return {"quantized_nodes": len(products), "excluded_nodes": excluded, "ranges": ranges, **options}


def _session_with_outputs(model: Path, names: list[str]) -> Any:
    """A session on the graph whose outputs are the named tensors alone."""
    import onnx
    import onnxruntime as ort

    proto = onnx.load(model, load_external_data=False)
    del proto.graph.output[:]
    proto.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
    )
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    settings.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(model.parent)
    )
    return ort.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def _range(collector: MaxCalibrator | HistogramCalibrator, method: str) -> float:
    if isinstance(collector, MaxCalibrator):
        return float(collector.compute_amax())
    names: dict[str, Method] = {"percentile": "percentile", "mse": "mse", "entropy": "entropy"}
    return float(collector.compute_amax(names[method]))


def _insert(graph: onnx.ModelProto, products: list[onnx.NodeProto], ranges: Ranges) -> None:
    """Put the pairs of nodes around each product; the nodes stay in the order of the data."""
    import onnx

    weights = {tensor.name: tensor for tensor in graph.graph.initializer}
    inserted: dict[str, list[onnx.NodeProto]] = {}
    for node in products:
        given, weight = node.input
        array = onnx.numpy_helper.to_array(weights[weight])
        scales = np.maximum(np.abs(array).max(0), 1e-30) / 127
        codes = np.clip(np.rint(array / scales), -127, 127).astype(np.int8)
        scale = np.float32(max(ranges[given], 1e-30) / 127)
        tensors = {
            f"{weight}.codes": codes,
            f"{weight}.scales": scales.astype(np.float32),
            f"{weight}.zero": np.zeros(len(scales), np.int8),
            f"{node.name}.scale": scale,
            f"{node.name}.zero": np.uint8(_MIDDLE),
        }
        graph.graph.initializer.remove(weights[weight])
        graph.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.asarray(values), name) for name, values in tensors.items()
        )
        around = [
            _node("QuantizeLinear", [given, f"{node.name}.scale", f"{node.name}.zero"], f"{node.name}.coded"),
            _node(
                "DequantizeLinear",
                [f"{node.name}.coded", f"{node.name}.scale", f"{node.name}.zero"],
                f"{node.name}.restored",
            ),
            _node(
                "DequantizeLinear",
                [f"{weight}.codes", f"{weight}.scales", f"{weight}.zero"],
                f"{weight}.restored",
                axis=1,
            ),
        ]
        inserted[node.name] = around
        node.input[:] = [f"{node.name}.restored", f"{weight}.restored"]
    ordered = [each for node in graph.graph.node for each in (*inserted.get(node.name, ()), node)]
    nodes = [onnx.NodeProto.FromString(each.SerializeToString()) for each in ordered]
    del graph.graph.node[:]
    graph.graph.node.extend(nodes)


def _node(
    op: Literal["QuantizeLinear", "DequantizeLinear"], given: list[str], out: str, **attributes: Any
) -> Any:
    import onnx

    return onnx.helper.make_node(op, given, [out], name=f"{out}.{op}", **attributes)
