"""Loops in the drawn codes: a model that repeats itself or holds one code.

It knows codes only. Loops are looked for on tokens because audio that repeats (a held vowel, silence) is often
right, while a long exact repetition of four codebooks at once is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_PERIOD = 94  # steps: 2 s at 46.875 steps a second
MIN_LOOP = 24  # steps: half a second of repetition, beside two whole periods
MIN_HELD = 47  # steps: one second of the same code
AGREEMENT = 0.9  # share of equal codes in the window: sampling breaks exact copies now and then


@dataclass(frozen=True)
class Loop:
    """A repetition: `period` steps long (1: one code held), matched over `steps` steps from `start`."""

    period: int
    start: int
    steps: int


def find_loop(codes: NDArray[np.integer]) -> Loop | None:
    """The first repetition, shortest period first, in codes [T, 4], or None.

    A period p counts when at least 90 % of the codes of a window equal those p steps before; the window is the
    longer of two periods and half a second (one second for a held code).
    """
    grid = np.asarray(codes)
    if grid.ndim != 2:
        raise ValueError(f"codes must be [T, codebooks], got shape {grid.shape}")
    for period in range(1, min(MAX_PERIOD, grid.shape[0] // 3) + 1):
        window = MIN_HELD if period == 1 else max(2 * period, MIN_LOOP)
        equal = (grid[period:] == grid[:-period]).mean(1)  # [T - period]
        if equal.size < window:
            continue
        total = np.concatenate([[0.0], np.cumsum(equal)])
        matching = (total[window:] - total[:-window]) / window >= AGREEMENT  # by window start
        if not matching.any():
            continue
        start = int(matching.argmax())
        more = int((~matching[start:]).argmax()) or matching.size - start  # windows in a row that match
        loop = Loop(period, start, more - 1 + window)
        middle = start + loop.steps // 2  # the edges of the match may reach into the codes around it
        if period == 1 or not _is_held(
            grid[middle : middle + period + 1]
        ):  # a short hold is silence, no loop
            return loop
    return None


def _is_held(cell: NDArray[np.integer]) -> bool:
    return bool((cell[1:] == cell[:-1]).mean() >= AGREEMENT)
