"""How the teacher says a sentence of the domain: some words respelled, and a real pause where `[uv_break]` stands.

Parts around a pause are spoken one by one, as if by commas, and joined with silence of a defined length.
"""

from __future__ import annotations

import re
import zlib

import numpy as np

from labkit.training.corpus import SAMPLE_RATE, level, trim
from labkit.training.data import Speak
from labkit.training.domain_plan import PAUSE
from labkit.training.lexicon import RESPELLED

PAUSE_S = 0.4
LEAD_S, TAIL_S = 0.04, 0.08  # of the silence that `trim` leaves around every part
HISS = 1e-4  # RMS of what fills a pause, -80 dB: rooms are never digitally silent


def respelled(text: str) -> str:
    """The text with some words as the teacher must read them to say them right."""
    return re.sub("|".join(rf"\b{word}\b" for word in RESPELLED), lambda found: RESPELLED[found[0]], text)


def as_written(speak: Speak) -> Speak:
    """`speak` for texts of the plan: words respelled, and PAUSE_S without speech where `[uv_break]` stands."""

    def paused(text: str, voice: str, tempo: float) -> np.ndarray:
        parts = [part.strip() for part in respelled(text).split(PAUSE)]
        if len(parts) == 1:
            return speak(parts[0], voice, tempo)
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        filler = int((PAUSE_S - LEAD_S - TAIL_S) * SAMPLE_RATE)
        pieces: list[np.ndarray] = []
        for i, part in enumerate(parts):
            if pieces:
                pieces.append((HISS * rng.standard_normal(filler)).astype(np.float32))
            ending = "" if i == len(parts) - 1 else ","
            spoken = trim(speak(part + ending, voice, tempo), LEAD_S, TAIL_S)
            if len(spoken) == 0:
                return spoken  # a silent part spoils the clip, and the checks will say so
            pieces.append(level(spoken))
        return np.concatenate(pieces)

    return paused
