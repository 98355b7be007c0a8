"""The same speech as other codes: moved by a part of a decode step, and a little louder or softer.

Codes depend on where the frames fall, so one clip gives as many code sequences as there are places to start. With an
hour of speech or less this is what keeps the GPT from learning clips by heart.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import numpy as np

from labkit.training.align import Boundaries
from labkit.training.corpus import SAMPLE_RATE, SAMPLES_PER_STEP, Clip

GAIN_DB = 1.5

Aligned = tuple[Clip, Boundaries | None]


def moved(clip: Clip, boundaries: Boundaries | None, samples: int, gain_db: float) -> Aligned:
    """The clip `samples` later, after silence, and `gain_db` louder; boundaries move along."""
    audio = np.pad(clip.audio, (samples, 0)) * np.float32(10 ** (gain_db / 20))
    later = samples / SAMPLE_RATE
    return Clip(clip.item, audio), None if boundaries is None else [
        (a + later, b + later) for a, b in boundaries
    ]


def variants(aligned: Iterable[Aligned], copies: int, seed: int) -> Iterator[Aligned]:
    """`copies` of every clip, their starts spread over one decode step, gains within GAIN_DB."""
    rng = random.Random(seed)
    for clip, boundaries in aligned:
        for copy in range(copies):
            gain = rng.uniform(-GAIN_DB, GAIN_DB)
            later = SAMPLES_PER_STEP * copy // copies + rng.randrange(SAMPLES_PER_STEP // copies)
            yield moved(clip, boundaries, later, gain)
