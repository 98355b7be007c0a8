"""Comparing runs: paired effects with intervals, verdicts in one word, and the refusal to compare unlike runs.

Pure functions on DataFrames and arrays; the names below are loaded when they are used (pandas is not small).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.compare.effects import Comparison, Rule, better_direction, difference, ratio
    from labkit.compare.pairing import comparable

_HOME = {
    "Comparison": "effects",
    "Rule": "effects",
    "better_direction": "effects",
    "comparable": "pairing",
    "difference": "effects",
    "ratio": "effects",
}
__all__ = ["Comparison", "Rule", "better_direction", "comparable", "difference", "ratio"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"labkit.compare.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
