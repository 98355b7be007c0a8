"""What may be compared, and which numbers belong together: runs by their identity, values by their item.

It knows the columns of the store's frames (`item`, `metric`, `value`; `phase` and `scenario` when present) and
which fields make two runs the same work on like machines. It knows no statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd

from labkit.errors import UserError

# what must agree, by its column in the wide frame, and how people call it
IDENTITY = {
    "weights_hash": "weights",
    "corpus_hash": "corpus",
    "scenario": "scenario",
    "machine_class": "machine class",
}


def comparable(run_a: Any, run_b: Any) -> list[str]:
    """Why two runs may not be compared, one reason each; empty when they may.

    Takes run documents, rows of the wide frame or plain mappings. Equal weights, corpus, scenario and machine
    class are needed, both runs must be ok, and what is not known equals nothing.
    """
    reasons = []
    for name, run in (("first", run_a), ("second", run_b)):
        status = _field(run, "status")
        if status not in (None, "ok"):
            reasons.append(f"the {name} run is {status}")
    for column, words in IDENTITY.items():
        one, other = _field(run_a, column), _field(run_b, column)
        if one is None or other is None:
            reasons.append(f"the {words} of a run is not known")
        elif one != other:
            reasons.append(f"the {words} differs: {_short(one)} and {_short(other)}")
    return reasons


def pair_items(
    candidate: pd.DataFrame, baseline: pd.DataFrame, metric: str, *, reduce: Literal["mean", "median"]
) -> tuple[pd.DataFrame, list[str]]:
    """One row per item that both have, columns `candidate` and `baseline`, and what had to be left out.

    Repetitions of an item are reduced first; warm-ups never enter. Frames of two scenarios give no pairs.
    Raises `UserError` for a frame without the needed columns or with more than one run in it.
    """
    frames = {"candidate": candidate, "baseline": baseline}
    scenarios = {str(name) for frame in frames.values() for name in _distinct(frame, "scenario")}
    sides = {side: _per_item(frame, metric, reduce) for side, frame in frames.items()}
    together = pd.DataFrame(sides, dtype="float64")
    if len(scenarios) > 1:
        return together.iloc[:0], [f"the scenario differs: {' and '.join(sorted(scenarios))}"]
    missing = together.isna().sum()
    reasons = [
        f"{missing[side]} items have no {metric} in the {side} and were left out"
        for side in sides
        if missing[side]
    ]
    return together.dropna(), reasons


def _per_item(frame: pd.DataFrame, metric: str, reduce: str) -> pd.Series:
    lacking = {"item", "metric", "value"} - set(frame.columns)
    if lacking:
        raise UserError(f"the frame has no column {', '.join(sorted(lacking))}; pass rows of load_long().")
    runs = _distinct(frame, "run_id")
    if len(runs) > 1:
        raise UserError(f"the frame mixes {len(runs)} runs ({runs[0]}, {runs[1]}, …); pass the rows of one.")
    rows = frame[frame["metric"] == metric]
    if "phase" in rows:
        rows = rows[rows["phase"] != "warmup"]
    per_item: pd.Series = rows.dropna(subset=["item"]).groupby("item", sort=True)["value"].agg(reduce)
    return per_item


def _distinct(frame: pd.DataFrame, column: str) -> list[Any]:
    return list(frame[column].dropna().unique()) if column in frame else []


def _field(run: Any, name: str) -> Any:
    if isinstance(run, Mapping | pd.Series):
        value = run.get(name)
    else:
        value = run.spec.scenario if name == "scenario" else getattr(run, name)
    return None if value is None or pd.isna(value) else value


def _short(value: Any) -> str:
    text = str(value)
    return f"{text[:12]}…" if len(text) > 24 and " " not in text else text
