"""Distill-MOS: a small network's guess of a large network's guess of what listeners would say.

It knows the weights and the architecture inside the `distillmos` package and the published segmentation: windows of
7.68 s at most 1 s apart, short clips padded with silence, every window at full peak. Windows go through one by one,
where the package takes them as one batch: the numbers are equal and the memory does not grow with the clip.

Stahl and Gamper, Distillation and Pruning for Scalable Self-Supervised Representation-Based Speech Quality
Assessment, ICASSP 2025.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_version
from labkit.quality.networks import installed_file, missing_package, one_torch_thread, short_hashes

WINDOW = 122_880  # samples at 16 kHz
MAX_HOP = 16_000
REMEDY = "Install it with `pip install --no-deps distillmos==0.9.1 xls-r-sqa==0.1.0`."


class DistillMos:
    """The network, loaded from the verified file. Raises `ScorerFileError` when it is not the published one."""

    def __init__(self) -> None:
        weights = DistillMosScorer.weights
        (name,) = weights
        file = installed_file("distillmos", name, weights)
        import torch

        with _torchaudio_optional():
            from distillmos import ConvTransformerSQAModel
        self._network = ConvTransformerSQAModel(load_weights=False, segmenting_in_forward=False)
        self._network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True)["model"])
        self._network.eval()

    def __call__(self, audio: NDArray[np.float32]) -> float:
        """The score, 1 to 5, of audio [N] at 16 kHz: the mean over its windows."""
        import torch

        over = max(0, audio.size - WINDOW)
        padded = np.pad(audio, (0, max(0, WINDOW - audio.size)))
        starts = (np.linspace(0, 1, math.ceil(over / MAX_HOP) + 1) * over).astype(int)
        with one_torch_thread():
            scores = [
                float(self._network(torch.from_numpy(padded[start : start + WINDOW])[None]))
                for start in starts
            ]
        return float(np.mean(scores))


@contextmanager
def _torchaudio_optional() -> Iterator[None]:
    """Let `import torchaudio` succeed while distillmos is imported: only its command line uses it."""
    if "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio"):
        yield
        return
    sys.modules["torchaudio"] = ModuleType("torchaudio")
    try:
        yield
    finally:
        del sys.modules["torchaudio"]


class DistillMosScorer:
    """Distill-MOS behind the metric contract."""

    name = "distillmos"
    metrics = (
        Metric(
            "distillmos",
            "1-5",
            "higher",
            "Distill-MOS: predicted overall quality; trust it near clean speech",
        ),
    )
    needs: frozenset[Need] = frozenset()
    languages: tuple[str, ...] | None = None
    rate = 16_000
    packages = ("distillmos", "xls_r_sqa", "torch")
    weights: ClassVar[dict[str, str]] = {
        "weights/distill_mos_v7.pt": "b18b3ac60227267cfb91e5d00ce22cc7b73716fd92f269484da1446e27031a40"
    }
    max_s = 60.0
    accepts_damaged = False
    cost_cpu_s = 0.36

    def availability(self) -> Ready | Missing:
        versions = f"distillmos {package_version('distillmos')} ({short_hashes(self.weights)})"
        return missing_package("Distill-MOS", self.packages, REMEDY) or Ready(
            f"{versions}, torch {package_version('torch')}"
        )

    def load(self) -> None:
        self._model = DistillMos()

    def score(self, clip: Clip) -> dict[str, Score]:
        return {"distillmos": Score(self._model(to_16k(clip.audio)))}
