from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.errors import CalibrationError
from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE
from labkit.quantize.static import OPTIONS, collect_ranges, quantize_static
from labkit.voices import Voice

DEFAULTS = {name: values[0] for name, values in OPTIONS.items()}


def silent(_: str) -> None: ...


@pytest.fixture
def feeds(tiny_voice: Voice, exact: Path) -> list[dict[str, np.ndarray]]:
    config, rng = tiny_voice.config.gpt, np.random.default_rng(0)
    shapes = {value.name: value.type.tensor_type.shape.dim
              for value in onnx.load(exact / MODEL_FILE, load_external_data=False).graph.input}  # fmt: skip
    head_dim = shapes["past_key_0"][3].dim_value
    return [
        {
            "embeddings": rng.standard_normal((1, length, config.hidden)).astype(np.float32),
            "last_position": np.array([length - 1], np.int32),
            "longest": np.array([length], np.int32),
            "read_at": np.array([[length - 1]], np.int64),
            **{
                f"past_{kind}_{i}": np.zeros((1, config.heads, length, head_dim), np.float32)
                for kind in ("key", "value")
                for i in range(config.layers)
            },
        }
        for length in (3, 20)
    ]


def test_ranges_are_what_the_products_were_fed(exact: Path, feeds) -> None:
    """The first product sees the first norm's output, known in closed form."""
    model = exact / MODEL_FILE
    ranges = collect_ranges(model, ["0.attention_norm", "1.product"], feeds, "max", silent)
    weights = {t.name: onnx.numpy_helper.to_array(t, str(exact)) for t in onnx.load(model).graph.initializer}
    expected = 0.0
    for feed in feeds:
        x = feed["embeddings"]
        normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weights["first.weight"]
        expected = max(expected, np.abs(normed).max())
    assert ranges["0.attention_norm"] == pytest.approx(expected, rel=1e-4)
    clipped = collect_ranges(model, ["0.attention_norm"], feeds, "percentile", silent)
    assert 0 < clipped["0.attention_norm"] < expected * 1.001


def test_nothing_and_nonsense_to_calibrate_on_are_refused(exact: Path, feeds) -> None:
    with pytest.raises(CalibrationError, match="no sentence"):
        collect_ranges(exact / MODEL_FILE, ["0.attention_norm"], [], "max", silent)
    feeds[1]["embeddings"][0, 0] = np.nan
    with pytest.raises(CalibrationError, match=r"0.attention_norm of sentence 2"):
        collect_ranges(exact / MODEL_FILE, ["0.attention_norm"], feeds, "max", silent)


@pytest.mark.parametrize("method", ["max", "entropy"])
def test_products_run_on_integers_near_the_exact_ones(
    exact: Path, feeds, tmp_path: Path, method: str
) -> None:
    import onnxruntime as ort

    def stream() -> Iterator[dict[str, np.ndarray]]:
        yield from feeds

    options = {**DEFAULTS, "calibration": method}
    details = quantize_static(exact, tmp_path, MODEL_FILE, HEAD_NODE, stream(), options, silent)
    onnx.checker.check_model(str(tmp_path / MODEL_FILE), full_check=True)
    assert details["quantized_nodes"] == 8 and details["excluded_nodes"] == [HEAD_NODE]
    inputs = ("attention_norm", "attended", "mlp_norm", "product")
    assert details["ranges"].keys() == {f"{layer}.{name}" for layer in (0, 1) for name in inputs}
    settings = ort.SessionOptions()
    settings.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    sessions = [ort.InferenceSession(str(folder / MODEL_FILE), settings if folder == tmp_path else None,
                                     providers=["CPUExecutionProvider"]) for folder in (exact, tmp_path)]  # fmt: skip
    wanted, found = (session.run(["hidden"], feeds[1])[0].ravel() for session in sessions)
    assert np.abs(wanted - found).max() > 0
    assert wanted @ found / np.linalg.norm(wanted) / np.linalg.norm(found) > 0.99
    fused = onnx.load(tmp_path / "optimized.onnx", load_external_data=False).graph.node
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in fused) == 8
