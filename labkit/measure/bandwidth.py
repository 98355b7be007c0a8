"""How fast this machine reads memory: the roof of the roofline.

Method: `threads` threads each run a BLAS single-precision dot product of a slice with itself, which reads every
byte of the slice once and does one fused multiply-add for each number. The rate of a thread is its bytes over
its CPU time (stalls on memory count, waiting for a core does not), the rates of one round are added, and the
best round is kept: interference only ever slows a round.

Bias: it under-reads where a dot product cannot saturate the memory (hand-written prefetching reads some percent
more), so shares computed with it err upwards; a share above 1 is flagged by `roofline`, not clipped.
Use a buffer of the size that a decode step reads: a small network lives in the cache, and so does its roof.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np

_FLOAT_BYTES = 4
_MIN_BYTES = 1 << 20
_MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Bandwidth:
    """`bytes_per_s` is the best of `rounds_bytes_per_s`, over a buffer of `buffer_bytes`."""

    bytes_per_s: float
    buffer_bytes: int
    threads: int
    rounds_bytes_per_s: tuple[float, ...]


def read_bandwidth(buffer_bytes: int, *, threads: int = 1, rounds: int = 8) -> Bandwidth:
    """Measure sequential reading over `buffer_bytes` (held between 1 MiB and 1 GiB), shared by `threads`."""
    size = min(max(buffer_bytes, _MIN_BYTES), _MAX_BYTES) // _FLOAT_BYTES // threads
    slices = [np.ones(size, dtype=np.float32) for _ in range(threads)]
    for numbers in slices:
        np.dot(numbers, numbers)  # first touch of the pages and of the BLAS kernel
    # a small buffer is read often enough that the clock's resolution does not matter (about 32 MiB a round)
    passes = max(1, (32 << 20) // (size * _FLOAT_BYTES))
    rates = tuple(_round(slices, passes) for _ in range(rounds))
    return Bandwidth(max(rates), size * _FLOAT_BYTES * threads, threads, rates)


def _round(slices: list[np.ndarray], passes: int) -> float:
    rates: list[float] = []
    if len(slices) == 1:
        _read(slices[0], passes, rates)
        return rates[0]
    workers = [threading.Thread(target=_read, args=(numbers, passes, rates)) for numbers in slices]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(rates)


def _read(numbers: np.ndarray, passes: int, rates: list[float]) -> None:
    started = time.thread_time()
    for _ in range(passes):
        np.dot(numbers, numbers)
    rates.append(passes * numbers.nbytes / max(time.thread_time() - started, 1e-9))
