"""A small fingerprint of what the reference recipe says, so that a baseline can tell when the reference itself changed.

All recipes are compared with the reference that the code at hand makes. If that drifted, nothing else would show it:
so a baseline keeps the reference's tokens whole, and of its answers just enough to see a change. A sentence of two
seconds takes about 7 kB. Shapes as in `labkit.gate.figures`; N samples.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.gate.figures import Forced, IntArray, log_softmax, relative_error, token_nll
from labkit.quality.audio import mel_filters, spectrum
from labkit.quality.base import SAMPLE_RATE

DIRECTIONS = 16  # of the hidden state: a random projection keeps relative errors to about a quarter
BANDS, FRAMES = 4, 4  # mel bands and frames that share one cell of the coarse mel
UNANCHORED = {
    "kl", "total_variation", "kl_drawn", "total_variation_drawn", "flips", "first_flip_steps", "heard_log_mel_db",
    "high_band_loss_db", "duration_ratio",
}  # fmt: skip
"""Metrics of the gate that a fingerprint is too small for: today's reference is not held to them."""
DB_STEP, DB_LOW = 0.5, -80.0  # of the coarse mel; the floor is that of the log-mel distance, 1e-4


@dataclass(frozen=True)
class Anchor:
    """codes: [T, C] int16; top: [T + 1, C] int16, the most likely codes; nll: [T, C] float32 of the codes;
    hidden: [T + 1, 16] float16; mel: [25, N / 1024] uint8 in steps of half a dB above -80 dB."""

    codes: NDArray[np.int16]
    top: NDArray[np.int16]
    nll: NDArray[np.float32]
    hidden: NDArray[np.float16]
    mel: NDArray[np.uint8]

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """For an `.npz`, under `<prefix>.<field>`."""
        return {f"{prefix}.{each.name}": getattr(self, each.name) for each in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], prefix: str) -> Anchor:
        """KeyError when a field is missing."""
        return cls(*(arrays[f"{prefix}.{each.name}"] for each in fields(cls)))


def make_anchor(answer: Forced, codes: IntArray, audio: NDArray[np.floating]) -> Anchor:
    """The fingerprint of the reference's answer on its own codes, and of its audio [N] at 24 kHz."""
    return Anchor(
        codes=codes.astype(np.int16),
        top=answer.logits.argmax(-1).astype(np.int16),
        nll=token_nll(log_softmax(answer.logits), codes).astype(np.float32),
        hidden=_project(answer.hidden).astype(np.float16),
        mel=_coarse_mel(audio),
    )


def compare_anchor(
    answer: Forced, audio: NDArray[np.floating], anchor: Anchor
) -> tuple[dict[str, float], dict[str, float]]:
    """Tier 1 (top1, nll, nll_delta, hidden_error) and tier 2 (log_mel_db) of today's reference against the anchor.

    ValueError when the answer or the audio has another length than the anchor says.
    """
    if answer.logits.shape[:2] != anchor.top.shape:
        raise ValueError(f"{len(answer.logits)} steps of answers, {len(anchor.top)} in the anchor")
    codes = anchor.codes.astype(np.int64)
    nll = token_nll(log_softmax(answer.logits), codes)
    mel = _coarse_mel(audio)
    if mel.shape != anchor.mel.shape:
        raise ValueError(f"audio of {len(audio)} samples is not as long as the anchor's")
    forced = {
        "top1": float((answer.logits.argmax(-1) == anchor.top).mean()),
        "nll": float(nll.mean()),
        "nll_delta": float((nll - anchor.nll).mean()),
        "hidden_error": relative_error(_project(answer.hidden), anchor.hidden.astype(np.float64)),
    }
    apart = np.abs(mel.astype(np.float64) - anchor.mel.astype(np.float64)).mean() * DB_STEP
    return forced, {"log_mel_db": float(apart)}


def _project(hidden: NDArray[np.floating]) -> NDArray[np.float64]:
    """[T, D] -> [T, 16]: signs of a seeded generator that no NumPy release changes."""
    width = hidden.shape[-1]
    bits = np.random.Philox(key=[width, DIRECTIONS]).random_raw(width * DIRECTIONS) >> np.uint64(63)
    signs = 1.0 - 2.0 * bits.astype(np.float64).reshape(width, DIRECTIONS)
    return np.asarray(hidden.astype(np.float64) @ signs / np.sqrt(DIRECTIONS))


def _coarse_mel(audio: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The log-mel of `log_mel_db`, in dB, averaged over cells of 4 bands and 4 frames: [25, frames / 4]."""
    mel = spectrum(audio, 1024, 256) @ mel_filters(SAMPLE_RATE, 1024, 100).T  # [F, 100]
    level = 20 * np.log10(np.maximum(mel, 10 ** (DB_LOW / 20)))
    whole = level[: len(level) // FRAMES * FRAMES]
    cells = whole.reshape(-1, FRAMES, 100 // BANDS, BANDS).mean((1, 3)).T
    return np.clip(np.round((cells - DB_LOW) / DB_STEP), 0, 255).astype(np.uint8)
