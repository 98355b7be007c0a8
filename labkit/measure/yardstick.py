"""A fixed piece of work, timed beside what is measured: how fast the machine was just then.

A virtual machine's core slows by a third from one minute to the next while its neighbours work (another program on
the same physical core, a lower clock), and CPU time slows with it. A multiple of work that met the same minute does
not. The work is that of a small network's step, products of one row and what stands between them, so it tells about
overhead and caches, not about the memory's bandwidth (that is `bandwidth`). It is NumPy's and Python's alone: neither
a change of the lab nor another torch moves it. Changing it makes every recorded multiple another unit.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from labkit.measure.clocks import read_clocks

ROUNDS, LAYERS, WIDTH, WIDER = 600, 4, 192, 576


def yardstick_s() -> float:
    """CPU seconds of the fixed work, now; some hundredths of a second."""
    layers, row = _layers(), np.ones(WIDTH, np.float32)
    before = read_clocks()
    for _ in range(ROUNDS):
        for layer in layers:
            wide = row @ layer
            wide /= 1 + np.abs(wide)
    return (read_clocks() - before).cpu_s


@cache
def _layers() -> tuple[NDArray[np.float32], ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((WIDTH, WIDER)).astype(np.float32) for _ in range(LAYERS))
