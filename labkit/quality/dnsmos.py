"""DNSMOS: a network's guess of what listeners would say, P.808 (one score) and P.835 (overall).

It knows the two published ONNX files inside the `speechmos` package and the published protocol around them:
9.01 s windows every second, a short clip repeated to fill one. The package itself is not imported, because it
imports librosa and requests. Clips are brought to -26 dBFS first, so a gain change alone moves nothing.

Reddy et al., DNSMOS P.835, ICASSP 2022; the polynomial maps network output to the P.835 scale.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import mel_filters, spectrum, to_16k
from labkit.quality.base import Clip, Metric, Missing, Need, Ready, Score
from labkit.quality.files import package_folder, package_version, verify
from labkit.quality.networks import missing_package, onnx_session, onnxruntime_version, short_hashes

RATE = 16_000
WINDOW = int(9.01 * RATE)  # samples a network sees
OVERALL_MAP = (-0.06766283, 1.11546468, 0.04602535)  # highest power first
P835, P808 = "dnsmos_models/sig_bak_ovr.onnx", "dnsmos_models/model_v8.onnx"
WEIGHTS = {
    P835: "269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
    P808: "9246480c58567bc6affd4200938e77eef49468c8bc7ed3776d109c07456f6e91",
}
REMEDY = "Install it with `pip install --no-deps speechmos==0.0.1.1`."


class Dnsmos(NamedTuple):
    """Both scores on their 1 to 5 scales."""

    p808: float
    overall: float


class DnsmosModel:
    """The two networks, one thread each. Raises `ScorerFileError` when a file is not the published one."""

    def __init__(self, folder: Path) -> None:
        for name, digest in WEIGHTS.items():
            verify(digest, folder / name)
        self._p835, self._p808 = onnx_session(folder / P835), onnx_session(folder / P808)

    def __call__(self, audio: NDArray[np.float32]) -> Dnsmos:
        """Score audio [N] at 16 kHz within [-1, 1], as published: the mean over all whole windows."""
        while audio.size < WINDOW:
            audio = np.concatenate([audio, audio])
        windows = int(max(0.0, audio.size // RATE - 9.01)) + 1
        scores = [self._window(audio[i * RATE : i * RATE + WINDOW]) for i in range(windows)]
        p808, overall = np.mean(scores, axis=0)
        return Dnsmos(float(p808), float(overall))

    def _window(self, audio: NDArray[np.float32]) -> tuple[float, float]:
        p808 = self._p808.run(None, {"input_1": p808_features(audio)[None]})[0]  # [1, 1]
        p835 = self._p835.run(None, {"input_1": audio[None]})[0]  # [1, 3]: signal, background, overall
        return float(p808[0][0]), float(np.polyval(OVERALL_MAP, p835[0][2]))


def p808_features(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """The P.808 network's input [F, 120]: mel power in dB under the clip's maximum, floored at -80, scaled."""
    power = spectrum(audio[:-160], 321, 160) ** 2 @ mel_filters(RATE, 321, 120).T
    decibel = 10 * np.log10(np.maximum(power, 1e-10))
    decibel -= 10 * np.log10(max(float(power.max()), 1e-10))
    return ((np.maximum(decibel, decibel.max() - 80.0) + 40.0) / 40.0).astype(np.float32)


class DnsmosScorer:
    """DNSMOS behind the metric contract."""

    name = "dnsmos"
    metrics = (
        Metric(
            "dnsmos_p808", "1-5", "higher", "DNSMOS P.808: predicted overall quality; hears noise, not words"
        ),
        Metric("dnsmos_ovrl", "1-5", "higher", "DNSMOS P.835 overall: predicted quality of speech in noise"),
    )
    needs: frozenset[Need] = frozenset()
    languages: tuple[str, ...] | None = None
    rate = RATE
    packages = ("speechmos", "onnxruntime")
    weights = WEIGHTS
    max_s = 120.0
    accepts_damaged = False
    cost_cpu_s = 0.4  # one window; a clip below 4.5 s is repeated and heard in two or three

    def availability(self) -> Ready | Missing:
        versions = f"speechmos {package_version('speechmos')} ({short_hashes(WEIGHTS)})"
        return missing_package("DNSMOS", self.packages, REMEDY) or Ready(
            f"{versions}, onnxruntime {onnxruntime_version()}, -26 dBFS"
        )

    def load(self) -> None:
        folder = package_folder("speechmos")
        assert folder is not None  # availability() was asked
        self._model = DnsmosModel(folder)

    def score(self, clip: Clip) -> dict[str, Score]:
        found = self._model(to_16k(clip.audio))
        return {"dnsmos_p808": Score(found.p808), "dnsmos_ovrl": Score(found.overall)}
