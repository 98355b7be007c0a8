"""Whose calibrator finds an activation's range: ours, or that of pytorch-quantization or nvidia-modelopt, in torch.

All three look at the same tensors and their ranges go into the same graph, so artifacts made with them differ by the
tool alone. The two are optional packages (`pip install 'labkit[ptq]'`); modelopt takes long to import.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.quantize.calibrators import HistogramCalibrator, MaxCalibrator, Method
from labkit.spec import Option

CALIBRATORS: tuple[Option, ...] = ("labkit", "pytorch-quantization", "modelopt")
"""Values of the option `calibrator`, the default first."""
PACKAGES: Mapping[str, str] = {
    "pytorch-quantization": "pytorch-quantization",
    "modelopt": "nvidia-modelopt",
}
"""The distribution that a calibrator needs."""
_MODULES = {
    "pytorch-quantization": "pytorch_quantization.calib",
    "modelopt": "modelopt.torch.quantization.calib",
}
_METHODS: Mapping[str, Method] = {"percentile": "percentile", "mse": "mse", "entropy": "entropy"}
_BITS = 8
_PERCENTILE = 99.99


class RangeFinder(Protocol):
    """Looks at a tensor batch by batch, then says its range."""

    def collect(self, x: NDArray[Any]) -> None: ...
    def amax(self) -> float: ...


def range_finder(calibrator: str, method: str) -> Callable[[], RangeFinder]:
    """How to make one: `calibrator` of `CALIBRATORS`, method max, percentile, mse or entropy.

    SpecError when the package is not installed, or for a method it cannot do here.
    """
    if calibrator == "labkit":
        return lambda: _Own(method)
    try:
        module = importlib.import_module(_MODULES[calibrator])
    except ImportError as error:
        raise SpecError(
            f"option calibrator: {calibrator} needs {PACKAGES[calibrator]}, which cannot be imported ({error}); "
            "pip install 'labkit[ptq]', or use calibrator: labkit."
        ) from error
    if method == "mse" and not _has_cuda():
        raise SpecError(
            f"options calibrator: {calibrator} and calibration: mse: that method runs on a CUDA device, and there is "
            "none; choose percentile, max or entropy, or calibrator: labkit."
        )
    return lambda: _Foreign(module, method)


class _Own:
    def __init__(self, method: str) -> None:
        self._method = method
        self._calibrator = (
            MaxCalibrator(_BITS, None, False) if method == "max" else HistogramCalibrator(_BITS, None, False)
        )

    def collect(self, x: NDArray[Any]) -> None:
        self._calibrator.collect(x)

    def amax(self) -> float:
        if isinstance(self._calibrator, MaxCalibrator):
            return float(self._calibrator.compute_amax())
        return float(self._calibrator.compute_amax(_METHODS[self._method], percentile=_PERCENTILE))


class _Foreign:
    """A calibrator of the two packages, whose classes and arguments have the same names."""

    def __init__(self, module: Any, method: str) -> None:
        self._method = method
        kind = module.MaxCalibrator if method == "max" else module.HistogramCalibrator
        self._calibrator = kind(_BITS, None, False)

    def collect(self, x: NDArray[Any]) -> None:
        import torch

        self._calibrator.collect(torch.from_numpy(x))

    def amax(self) -> float:
        if self._method == "max":
            return float(self._calibrator.compute_amax())
        options = {"percentile": _PERCENTILE} if self._method == "percentile" else {}
        return float(self._calibrator.compute_amax(self._method, **options))


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()
