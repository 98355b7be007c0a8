"""What was run for the tables, and what was drawn from it, in sentences: every number in them is one of the findings'.

It knows efforts and findings. The tables are in `tables.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from labkit.faults.drawing import SEEDS
from labkit.faults.findings import SAME_VOICE
from labkit.faults.speeds import BASE, HEAD
from labkit.faults.timing import LARGER, REPEATS, SLOWER, TEXTS
from labkit.report.noise import QUIET_SHARE

if TYPE_CHECKING:
    from labkit.faults.running import Effort, Findings


def how_gates(effort: Effort) -> str:
    """Of gates in which nothing changed."""
    clips, apart = effort.seeds * effort.sentences, effort.seeds // (2 * SEEDS)
    return _one_line(f"""
        Drawn from {effort.sentences} sentences that were really spoken and scored, and judged as a gate judges. Tiers
        0 to 2: the reference spoke in {len(SAME_VOICE)} ways that change nothing (as it is, on two threads, from an
        ONNX export made afresh), and for each sentence one of them is drawn for either side. Fed tokens leave nothing
        to chance but rounding: these gates are nearly one and the same. Tier 3: the reference spoke freely with
        {effort.seeds} seeds, {clips} clips. For each sentence {SEEDS} seeds are drawn for the base, {SEEDS} others for
        the head and {SEEDS} more for the gate's own A/A arm: other noise on every clip, so that a false alarm can
        happen. No sentence is left out of a gate. The gates share their clips: no more than {apart} of them could be
        had without using a clip twice. FAIL is counted before the A/A arm is asked; in brackets how many of those it
        holds back.""")


def how_speed(found: Findings) -> str:
    """Of timed processes, and whether they were alone on the machine."""
    effort = found.effort
    words = f"""
        Fresh processes, one at a time and in turns, replayed {TEXTS} sentences {REPEATS} times each after a warm-up:
        of each recipe {effort.base_processes} as they are, {effort.head_processes} with a real busy loop that burns
        {SLOWER * 100:.0f} % of the process's own time, and {effort.head_processes} of the reference with
        {LARGER * 100:.0f} % more memory.
        Times are processor time; ours takes them as multiples of the yardstick's, a fixed piece of work beside each
        sentence. The table: percent of {effort.timings} experiments that end in FAIL or PASS, or in
        another rule's alarm. For each, {BASE} processes are drawn for the base without putting back, and {HEAD}
        others, multiplied, are the head. Other rules are given the repetitions of one process a side, as they usually
        are, and, after the slash, the medians that ours is given."""
    for recipe, speed in found.speed.items():
        if speed.spread is not None and speed.spread_of_seconds is not None:
            words += f""" Process medians of `{recipe}` spread by {speed.spread * 100:.1f} % (standard deviation), in
                seconds by {speed.spread_of_seconds * 100:.1f} %."""
    share = min((each.core_share for each in found.speed.values()), default=1.0)
    if share < QUIET_SHARE:
        words += f""" **The machine was busy:** half of the processes got {share * 100:.0f} % of a core or less, which
            makes every slow-down harder to decide than on a quiet machine."""
    return _one_line(words)


def _one_line(words: str) -> str:
    return " ".join(words.split())
