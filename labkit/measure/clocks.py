"""Two clocks read together: wall time and the CPU time of this process.

A busy machine stretches the first and leaves the second nearly alone, so both are kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """Seconds on both clocks; differences of readings are durations."""

    wall_s: float
    cpu_s: float

    def __sub__(self, earlier: Reading) -> Reading:
        return Reading(self.wall_s - earlier.wall_s, self.cpu_s - earlier.cpu_s)


def read_clocks() -> Reading:
    """Now, on `perf_counter` and `process_time` (user and system seconds of all threads)."""
    return Reading(time.perf_counter(), time.process_time())


def seconds_since(spawned_at: float) -> float:
    """Wall seconds since another process noted `time.monotonic()`.

    That clock counts from the machine's start on Linux, macOS and Windows, so two processes may compare it.
    """
    return time.monotonic() - spawned_at
