"""GE2E: a 256-dimensional vector of who is speaking, from an LSTM trained on English speakers.

It knows the weights inside the `resemblyzer` package and the published protocol around them: a 40-band mel, windows of
1.6 s, the mean of their vectors. The package itself is not imported, because it needs librosa and a compiler.
Its voice detector is replaced by cutting quiet edges, and its level is always set, so that a gain moves nothing.

Wan et al., Generalized End-to-End Loss for Speaker Verification, ICASSP 2018.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.quality.audio import mel_filters, spectrum
from labkit.quality.networks import installed_file, one_torch_thread

RATE = 16_000
PACKAGES = ("resemblyzer", "torch")
WEIGHTS = {"pretrained.pt": "39373b86598fa3da9fcddee6142382efe09777e8d37dc9c0561f41f0070f134e"}
FRAME, HOP, BANDS = 400, 160, 40
HIDDEN = 256
WINDOW = 160  # frames: 1.6 s
STEP = 77  # frames between windows: 1.3 windows a second
MIN_COVERAGE = 0.75  # of the last window, or it is left out
LEVEL_DBFS = -30.0  # the mel is linear, so the network hears level
EDGE_DB = -40.0  # quieter than this under the loudest 20 ms: an edge to cut


class Ge2e:
    """The network, loaded from the verified file. Raises `ScorerFileError` when a file is not the published one."""

    def __init__(self) -> None:
        (name,) = WEIGHTS
        file = installed_file("resemblyzer", name, WEIGHTS)
        import torch
        from torch import nn

        state = torch.load(file, map_location="cpu", weights_only=True)["model_state"]
        self._lstm = nn.LSTM(BANDS, HIDDEN, num_layers=3, batch_first=True).eval()
        self._linear = nn.Linear(HIDDEN, HIDDEN).eval()
        for part, prefix in ((self._lstm, "lstm."), (self._linear, "linear.")):
            part.load_state_dict(
                {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
            )

    def __call__(self, audio: NDArray[np.float32]) -> NDArray[np.float32]:
        """The speaker's vector [256] of unit length, for audio [N] at 16 kHz."""
        import torch

        with one_torch_thread():
            _, (hidden, _) = self._lstm(torch.from_numpy(windows(prepared(audio))))
            vectors = torch.relu(self._linear(hidden[-1]))  # [windows, 256]
            mean = (vectors / vectors.norm(dim=1, keepdim=True)).mean(0)
            return np.asarray((mean / mean.norm()).numpy(), np.float32)


def prepared(audio: NDArray[np.float32]) -> NDArray[np.float64]:
    """Audio [N] at 16 kHz without its quiet edges, at an RMS of -30 dBFS."""
    width = RATE // 50
    samples = np.asarray(audio, np.float64)
    energy = (samples[: samples.size // width * width].reshape(-1, width) ** 2).mean(1)
    loud = np.flatnonzero(energy > energy.max() * 10 ** (EDGE_DB / 10))
    samples = samples[loud[0] * width : (loud[-1] + 1) * width]
    return samples * (10 ** (LEVEL_DBFS / 20) / np.sqrt((samples**2).mean()))


def windows(audio: NDArray[np.float64]) -> NDArray[np.float32]:
    """Mel power [windows, 160, 40] of audio [N]; the last window is padded with silence, or left out."""
    frames = -(-(audio.size + 1) // HOP)
    starts = list(range(0, max(1, frames - WINDOW + STEP + 1), STEP))
    if len(starts) > 1 and (audio.size / HOP - starts[-1]) / WINDOW < MIN_COVERAGE:
        starts.pop()
    padded = np.pad(audio, (0, max(0, (starts[-1] + WINDOW) * HOP - audio.size)))
    mel = (spectrum(padded, FRAME, HOP) ** 2 @ mel_filters(RATE, FRAME, BANDS).T).astype(np.float32)
    return np.stack([mel[start : start + WINDOW] for start in starts])
