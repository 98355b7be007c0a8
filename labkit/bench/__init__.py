"""Benchmarks of the lab itself: `bench_self` measures the lab's recipes and upstream side by side.

    worker.py      the program in each lab arm's process: load, prefill, take steps, probe the memory
    arms.py        one long-lived process per arm, driven in turns by the parent
    steps.py       interleaved rounds of decode steps, and what they say: ratios with intervals, roofline
    small.py       what is measured on nano and on nothing: `say` from cold, RTF, import time, the harness itself
    targets.py     what the lab set out to reach, beside what was reached
    table.py       the figures as rich tables

A benchmark is not a test: it prints what it found, whatever that is.
"""

from __future__ import annotations

from labkit.bench.own import bench_self
from labkit.bench.table import render

__all__ = ["bench_self", "render"]
