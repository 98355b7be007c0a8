"""ViSQOL: how similar a clip sounds to its reference clip, from spectrograms of an ear model.

It knows the package `visqol-python` in speech mode and the mapping of similarity to a score that the lab uses: the
fitted exponential scaled to 5, whatever else is installed, so that one clip has one score on every machine. The
package aligns the two clips itself. Numba makes it eight times faster; its first call on a machine compiles for some
seconds.

Chinen et al., ViSQOL v3: An Open Source Production Ready Objective Speech and Audio Metric, QoMEX 2020.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from labkit.quality.audio import to_16k
from labkit.quality.base import SAMPLE_RATE, Clip, FloatArray, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_folder, package_version
from labkit.quality.networks import missing_package

RATE = 16_000
MIN_S = 1.0  # the shortest clip in which it finds a patch to compare
REMEDY = "Install the extra with `pip install 'labkit[quality]'`."


class Visqol:
    """The comparison, one thread."""

    def __init__(self) -> None:
        if package_folder("numba") is not None:
            import numba

            numba.set_num_threads(1)
        from visqol import VisqolApi

        self._api: Any = VisqolApi()
        self._api.create(mode="speech", use_lattice_model=False)

    def __call__(self, audio: FloatArray, reference: FloatArray) -> float:
        """The score, 1 to 5, of audio [N] against reference [M], both at 24 kHz and at least a second long."""
        heard, wanted = (to_16k(clip, level_dbfs=None).astype(np.float64) for clip in (audio, reference))
        return float(self._api.measure_from_arrays(wanted, heard, RATE).moslqo)


class VisqolScorer:
    """ViSQOL behind the metric contract."""

    name = "visqol"
    metrics = (
        Metric(
            "visqol", "1-5", "higher", "ViSQOL speech mode: similarity to the reference on the same tokens"
        ),
    )
    needs: frozenset[Need] = frozenset({"reference"})
    languages: tuple[str, ...] | None = None
    rate = RATE
    packages = ("visqol",)
    weights: ClassVar[dict[str, str]] = {}  # a formula in the package's code
    max_s = 60.0
    accepts_damaged = False
    cost_cpu_s = 0.16

    def availability(self) -> Ready | Missing:
        return missing_package("ViSQOL", self.packages, REMEDY) or Ready(
            f"visqol-python {package_version('visqol-python')} (speech, exponential mapping to 5)"
        )

    def load(self) -> None:
        self._compare = Visqol()

    def score(self, clip: Clip) -> dict[str, Score]:
        reference = np.asarray(clip.reference_audio)
        seconds = min(len(clip.audio), len(reference)) / SAMPLE_RATE
        if seconds < MIN_S:
            return {"visqol": Score(None, f"too short: {seconds:.2f} s, ViSQOL needs {MIN_S:g} s")}
        return {"visqol": Score(self._compare(clip.audio, reference))}
