"""Answers of a device held against the CPU's fp32 ones: how far apart, and how far is too far.

It knows arrays. Distances of hidden states, mel and audio are relative: the norm of the difference over the norm of
the CPU's answer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]

LIMITS = {"fp32": 1e-3, "fp16": 2e-2, "bf16": 1e-1}
"""Largest relative distance of each precision: fp32 differs in the order of sums alone; the others round to 11 and 8
bits, a few times over in 20 layers (bf16 on a CPU: 1.4e-2 on random weights)."""
RELATIVE = ("parity_hidden_relative", "parity_mel_relative", "parity_audio_relative")


@dataclass(frozen=True)
class Answers:
    """logits [T, B, 4, V]; hidden [T, B, D]; features [T, D] of the first row; mel [1, 100, 2T]; audio [1, N]."""

    logits: FloatArray
    hidden: FloatArray
    features: FloatArray
    mel: FloatArray
    audio: FloatArray

    def save(self, path: Path) -> None:
        np.savez(path, **asdict(self))

    @classmethod
    def load(cls, path: Path) -> Answers:
        with np.load(path) as arrays:
            return cls(**{name: arrays[name] for name in arrays.files})


def compare(own: Answers, reference: Answers) -> dict[str, float]:
    """The distances, and the share of codes whose likeliest value is the same."""
    return {
        "parity_logits_max": float(np.abs(own.logits - reference.logits).max()),
        "parity_top1_share": float((own.logits.argmax(-1) == reference.logits.argmax(-1)).mean()),
        "parity_hidden_relative": _relative(own.hidden, reference.hidden),
        "parity_mel_relative": _relative(own.mel, reference.mel),
        "parity_audio_relative": _relative(own.audio, reference.audio),
    }


def too_far(values: dict[str, float | int | None], precision: str) -> list[str]:
    """What lies beyond the precision's limit, in words; a NaN is beyond every limit."""
    limit = LIMITS[precision]
    known = {name: value for name in RELATIVE if (value := values.get(name)) is not None}
    return [f"{name} is {value:.2g}, above {limit:g}" for name, value in known.items() if not value <= limit]


def _relative(own: FloatArray, reference: FloatArray) -> float:
    return float(np.linalg.norm(own - reference) / max(float(np.linalg.norm(reference)), 1e-30))
