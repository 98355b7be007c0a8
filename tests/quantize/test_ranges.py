"""Which tool finds the ranges: ours and, where installed, the two that came before it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from labkit.errors import SpecError
from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE
from labkit.quantize import ranges
from labkit.quantize.ranges import CALIBRATORS, range_finder
from labkit.quantize.static import OPTIONS, quantize_static

OTHERS = {"pytorch-quantization": "pytorch_quantization", "modelopt": "modelopt"}
DEFAULTS = {name: values[0] for name, values in OPTIONS.items()}


def found(calibrator: str, method: str) -> float:
    finder = range_finder(calibrator, method)()
    random = np.random.default_rng(0)
    for _ in range(3):
        finder.collect(random.laplace(size=(50, 40)).astype(np.float32))
    return finder.amax()


def test_ways_of_looking_differ_as_they_should() -> None:
    widest = found("labkit", "max")
    assert 0.5 * widest < found("labkit", "percentile") <= widest * 1.001
    assert found("labkit", "mse") < widest


@pytest.mark.parametrize("calibrator", OTHERS)
@pytest.mark.parametrize("method", ["max", "percentile", "entropy"])
def test_the_others_find_the_same_where_they_are_installed(calibrator: str, method: str) -> None:
    pytest.importorskip(OTHERS[calibrator])
    assert found(calibrator, method) == pytest.approx(found("labkit", method), rel=1e-5)


def test_an_artifact_says_which_tool_found_its_ranges(exact: Path, feeds, tmp_path: Path) -> None:
    installed = [name for name in CALIBRATORS if name == "labkit" or importlib.util.find_spec(OTHERS[name])]
    for name in installed:
        folder = tmp_path / name
        folder.mkdir()
        options = {**DEFAULTS, "calibrator": name}
        details = quantize_static(exact, folder, MODEL_FILE, HEAD_NODE, feeds, options, lambda _: None)
        assert details["tool"] == details["calibrator"] == name


def test_a_tool_that_is_not_installed_is_refused_before_any_work(
    exact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ranges._MODULES, "modelopt", "no_such_package.calib")
    options = {**DEFAULTS, "calibrator": "modelopt"}
    with pytest.raises(SpecError, match=r"needs nvidia-modelopt.*pip install 'labkit\[ptq\]'"):
        quantize_static(exact, tmp_path, MODEL_FILE, HEAD_NODE, iter([1]), options, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_a_method_that_needs_a_gpu_is_refused_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ranges._MODULES, "modelopt", "math")
    monkeypatch.setattr(ranges, "_has_cuda", lambda: False)
    with pytest.raises(SpecError, match=r"calibration: mse.*CUDA"):
        range_finder("modelopt", "mse")
