"""Comparing runs: paired effects with intervals, verdicts against margins, and the refusal to compare unlike runs.

Pure functions on DataFrames, arrays and scores by item; the names below are loaded when they are used (pandas is
not small).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.compare.effects import Comparison, Rule, better_direction, difference, ratio
    from labkit.compare.margins import Margin, load_margins
    from labkit.compare.outcome import Overall, overall
    from labkit.compare.pairing import comparable
    from labkit.compare.ratings import RatingInterval, two_way_interval
    from labkit.compare.scores import item_scores
    from labkit.compare.speed import memory_verdict, process_medians, speed_verdict
    from labkit.compare.verdicts import Verdict, judge_family, verdict

_HOME = {
    "Comparison": "effects",
    "Margin": "margins",
    "Overall": "outcome",
    "RatingInterval": "ratings",
    "Rule": "effects",
    "Verdict": "verdicts",
    "better_direction": "effects",
    "comparable": "pairing",
    "difference": "effects",
    "item_scores": "scores",
    "judge_family": "verdicts",
    "load_margins": "margins",
    "memory_verdict": "speed",
    "overall": "outcome",
    "process_medians": "speed",
    "ratio": "effects",
    "speed_verdict": "speed",
    "two_way_interval": "ratings",
    "verdict": "verdicts",
}
__all__ = [
    "Comparison", "Margin", "Overall", "RatingInterval", "Rule", "Verdict", "better_direction", "comparable",
    "difference", "item_scores", "judge_family", "load_margins", "memory_verdict", "overall", "process_medians",
    "ratio", "speed_verdict", "two_way_interval", "verdict",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"labkit.compare.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
