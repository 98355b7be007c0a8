from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.errors import CalibrationError
from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE
from labkit.quantize.ranges import range_finder
from labkit.quantize.static import OPTIONS, collect, quantize_static
from labkit.spec import Option

DEFAULTS = {name: values[0] for name, values in OPTIONS.items()}


def silent(_: str) -> None: ...


def test_ranges_are_what_the_products_were_fed(exact: Path, feeds) -> None:
    """The first product sees the first norm's output, known in closed form."""
    model = exact / MODEL_FILE
    ranges, _ = collect(
        model, ["0.attention_norm", "1.product"], feeds, range_finder("labkit", "max"), silent
    )
    weights = {t.name: onnx.numpy_helper.to_array(t, str(exact)) for t in onnx.load(model).graph.initializer}
    expected = 0.0
    for feed in feeds:
        x = feed["embeddings"]
        normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weights["first.weight"]
        expected = max(expected, np.abs(normed).max())
    assert ranges["0.attention_norm"] == pytest.approx(expected, rel=1e-4)
    clipped, _ = collect(model, ["0.attention_norm"], feeds, range_finder("labkit", "percentile"), silent)
    assert 0 < clipped["0.attention_norm"] < expected * 1.001


def test_nothing_and_nonsense_to_calibrate_on_are_refused(exact: Path, feeds) -> None:
    with pytest.raises(CalibrationError, match="no sentence"):
        collect(exact / MODEL_FILE, ["0.attention_norm"], [], range_finder("labkit", "max"), silent)
    feeds[1]["embeddings"][0, 0] = np.nan
    with pytest.raises(CalibrationError, match=r"0.attention_norm of sentence 2"):
        collect(exact / MODEL_FILE, ["0.attention_norm"], feeds, range_finder("labkit", "max"), silent)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"algorithm": "rtn"},
        {"wide_activations": "none", "calibration": "entropy"},
        {"wide_activations": "down", "calibration": "percentile", "algorithm": "rtn"},
    ],
)
def test_products_run_on_integers_near_the_exact_ones(
    exact: Path, feeds, tmp_path: Path, options: dict[str, Option]
) -> None:
    def stream() -> Iterator[dict[str, np.ndarray]]:
        yield from feeds

    details = quantize_static(
        exact, tmp_path, MODEL_FILE, HEAD_NODE, stream(), {**DEFAULTS, **options}, silent
    )
    onnx.checker.check_model(str(tmp_path / MODEL_FILE), full_check=True)
    assert details["quantized_nodes"] == 8 and details["excluded_nodes"] == [HEAD_NODE]
    inputs = ("attention_norm", "attended", "mlp_norm", "product")
    assert details["ranges"].keys() == {f"{layer}.{name}" for layer in (0, 1) for name in inputs}
    fused = optimized(tmp_path)
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in fused) == 8
    wanted, found = (hidden(folder, feeds[1]) for folder in (exact, tmp_path))
    assert 0 < distance(found, wanted) < 0.1


def test_16_bits_of_activations_leave_a_fraction_of_the_error(exact: Path, feeds, tmp_path: Path) -> None:
    errors = {}
    for wide in ("none", "down", "all"):
        folder = tmp_path / wide
        folder.mkdir()
        options = {**DEFAULTS, "wide_activations": wide, "algorithm": "rtn"}
        quantize_static(exact, folder, MODEL_FILE, HEAD_NODE, feeds, options, silent)
        errors[wide] = distance(hidden(folder, feeds[1]), hidden(exact, feeds[1]))
    assert errors["all"] < errors["down"] < errors["none"]
    assert errors["all"] < 0.6 * errors["none"]  # what is left is the rounding of weights


def test_layers_named_stay_in_float32(exact: Path, feeds, tmp_path: Path) -> None:
    options = {**DEFAULTS, "fp32_layers": "1"}
    details = quantize_static(exact, tmp_path, MODEL_FILE, HEAD_NODE, feeds, options, silent)
    kept = [f"1.{name}.MatMul" for name in ("qkv", "out", "gate_up", "down")]
    assert details["excluded_nodes"] == [*kept, HEAD_NODE] and details["quantized_nodes"] == 4


def optimized(folder: Path) -> list[onnx.NodeProto]:
    """The nodes that ONNX Runtime makes of a graph."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(str(folder / MODEL_FILE), settings, providers=["CPUExecutionProvider"])
    return list(onnx.load(folder / "optimized.onnx", load_external_data=False).graph.node)


def hidden(folder: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    import onnxruntime as ort

    session = ort.InferenceSession(str(folder / MODEL_FILE), providers=["CPUExecutionProvider"])
    return session.run(["hidden"], feed)[0].ravel()


def distance(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
