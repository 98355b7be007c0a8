"""PLCMOS: a network's guess of what listeners would say of speech with losses and their concealment.

It knows the published ONNX file inside the `speechmos` package, its spectrum, and fifteen raters. The network asks for
a rater as a random vector and the package draws new ones on every call; here they are drawn once from a fixed seed,
so that a clip has one score. Clips are brought to -26 dBFS first, so a gain change alone moves nothing.

Diener et al., PLCMOS: A Data-driven Non-intrusive Metric for Packet Loss Concealment, Interspeech 2023.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_version
from labkit.quality.networks import (
    installed_file,
    missing_package,
    onnx_session,
    onnxruntime_version,
    short_hashes,
)

RATE = 16_000
FRAME, HOP = 512, 256
FLOOR = (
    1e-12  # of power, against the smallest power that is not zero: -120 dB, for bins that are exactly zero
)
SCALE = 20.0  # the network's features are natural logs of power over this
RATERS, RATER_SIZE, RATER_SEED = 15, 64, 0
REMEDY = "Install it with `pip install --no-deps speechmos==0.0.1.1`."


class PlcMos:
    """The network and its raters. Raises `ScorerFileError` when the file is not the published one."""

    def __init__(self) -> None:
        (name,) = PlcMosScorer.weights
        self._session = onnx_session(installed_file("speechmos", name, PlcMosScorer.weights))
        draws = np.random.default_rng(RATER_SEED).standard_normal((RATERS, 1, RATER_SIZE))
        self._raters = draws.astype(np.float32)

    def __call__(self, audio: NDArray[np.float32]) -> float:
        """The score, 1 to 5, of audio [N] at 16 kHz within [-1, 1]: the mean over the raters."""
        heard = features(audio)[None, None]
        answers = [
            self._session.run(None, {"degraded_audio": heard, "rater_embed": rater})[0]
            for rater in self._raters
        ]
        return float(np.mean(answers))


def features(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """The network's input [F, 257] for audio [N]: log power of half-overlapping Hamming frames, the first half
    empty."""
    window = np.hamming(FRAME + 1)[:-1]
    count = -(-(audio.size + HOP) // HOP)
    padded = np.zeros((count - 1) * HOP + FRAME)
    padded[HOP : HOP + audio.size] = audio
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    heard = power > 0
    quietest = power[heard].min() if heard.any() else 1.0
    return (np.log(np.where(heard, power, quietest * FLOOR)) / SCALE).astype(np.float32)


class PlcMosScorer:
    """PLCMOS behind the metric contract."""

    name = "plcmos"
    metrics = (
        Metric(
            "plcmos", "1-5", "higher", "PLCMOS: predicted quality of concealed losses; hears gaps and clicks"
        ),
    )
    needs: frozenset[Need] = frozenset()
    languages: tuple[str, ...] | None = None
    rate = RATE
    packages = ("speechmos", "onnxruntime")
    weights: ClassVar[dict[str, str]] = {
        "plcmos_models/plcmos_v2.onnx": "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286"
    }
    max_s = 60.0
    accepts_damaged = False
    cost_cpu_s = 0.26

    def availability(self) -> Ready | Missing:
        versions = f"speechmos {package_version('speechmos')} ({short_hashes(self.weights)})"
        return missing_package("PLCMOS", self.packages, REMEDY) or Ready(
            f"{versions}, onnxruntime {onnxruntime_version()}, {RATERS} raters of seed {RATER_SEED}, -26 dBFS"
        )

    def load(self) -> None:
        self._model = PlcMos()

    def score(self, clip: Clip) -> dict[str, Score]:
        return {"plcmos": Score(self._model(to_16k(clip.audio)))}
