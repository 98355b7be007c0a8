"""Clicks: isolated transients that a clip has and its reference clip has not.

It knows samples only. A click is a sample whose third difference stands far above those around it. Speech has some of
its own (a plosive after a pause), so a count in one clip means little: what the same tokens got beyond the reference
clip is what a recipe added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from labkit.quality.base import SAMPLE_RATE

BLOCK = SAMPLE_RATE // 50  # 20 ms, over which the usual size of a third difference is taken
RATIO = 60.0  # a click against that usual size
MATCH_RATIO = (
    20.0  # what may pass for it in the reference clip: rounding must not push a transient over the line
)
FLOOR = 2e-4  # of the active level: in silence every rounding step would stand out
APART = SAMPLE_RATE // 200  # 5 ms: closer ones are one click
SAME = SAMPLE_RATE // 500  # 2 ms: a transient of the reference clip, moved a little


def transients(wave: NDArray[np.floating], active: float) -> NDArray[np.int64]:
    """Where the isolated transients of a wave [N] at 24 kHz begin, in samples; active: its level, linear."""
    sharp = _sharp(wave, active, RATIO)
    return sharp[np.diff(sharp, prepend=-APART - 1) > APART]


def extra_transients(wave: NDArray[np.floating], reference: NDArray[np.floating], active: float) -> int:
    """How many transients of a wave [N] have nothing sharp of the reference [M] within 2 ms; active: its level."""
    mine, theirs = transients(wave, active), _sharp(reference, active, MATCH_RATIO)
    if not theirs.size:
        return int(mine.size)
    after = np.searchsorted(theirs, mine)
    beside = np.stack([theirs[np.maximum(after - 1, 0)], theirs[np.minimum(after, theirs.size - 1)]])
    return int((np.abs(beside - mine).min(0) > SAME).sum())


def _sharp(wave: NDArray[np.floating], active: float, ratio: float) -> NDArray[np.int64]:
    jumps = np.abs(np.diff(np.asarray(wave, np.float64), 3))
    if not jumps.size:
        return np.zeros(0, np.int64)
    medians = [np.median(jumps[start : start + BLOCK]) for start in range(0, jumps.size, BLOCK)]
    usual = np.repeat(np.maximum(medians, active * FLOOR), BLOCK)[: jumps.size]
    return np.flatnonzero(jumps > ratio * usual)
