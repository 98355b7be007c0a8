"""Benchmarks of the lab itself: its recipes, upstream and llama.cpp side by side.

    own.py         `bench self`: decode steps of a few recipes beside upstream, and the lab's own small costs
    peers.py       `bench peers`: three races of everything that can run here
    race.py        arms that work in turns, and what their times say: ratios with intervals, roofline
    arms.py        one long-lived process per arm, driven in turns by the parent
    worker.py      the program in each arm's process: load, prefill, take steps, make sound, probe the memory
    llama.py       llama.cpp as an arm; llama_file.py writes the file that it opens
    small.py       what is measured on nano and on nothing: `say` from cold, RTF, import time, the harness itself
    targets.py     what the lab set out to reach, beside what was reached
    documents.py   figures as run documents; table.py, peers_table.py and chart.py show them; files.py writes all

A benchmark is not a test: it prints what it found, whatever that is.
"""

from __future__ import annotations

from labkit.bench.own import bench_self
from labkit.bench.peers import bench_peers
from labkit.bench.peers_table import render_peers
from labkit.bench.table import render

__all__ = ["bench_peers", "bench_self", "render", "render_peers"]
