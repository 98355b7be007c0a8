"""Votes -> what listeners thought, with intervals over listeners and texts, and how far each listener can be trusted.

The trials that test the listener never enter an opinion. Nobody is left out in silence: whoever fails is named.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

import pandas as pd

from labkit.compare.ratings import two_way_interval
from labkit.results.ratings import Vote, read_votes
from labkit.results.store import Store

OPINIONS = (
    "test",
    "metric",
    "recipe",
    "against",
    "mean",
    "low",
    "high",
    "listeners",
    "texts",
    "votes",
    "reason",
)
LISTENERS = ("test", "rater", "votes", "muffled_below", "repeat_within_1", "null_same", "remark")


def votes_frame(store: Store, test: str | None = None, runs: Collection[str] | None = None) -> pd.DataFrame:
    """One row per counted vote, anchors included; `runs`: only votes in which all that was heard is of these runs."""
    votes, _ = read_votes(store.folder)
    rows = [
        asdict(vote)
        for vote in votes
        if test in (None, vote.test) and (runs is None or {vote.run_id, vote.against} <= {*runs, ""})
    ]
    return pd.DataFrame.from_records(rows, columns=list(Vote.__dataclass_fields__))


def opinions(
    store: Store,
    test: str | None = None,
    *,
    runs: Collection[str] | None = None,
    leave_out: Collection[str] = (),
    confidence: float = 0.95,
) -> pd.DataFrame:
    """One row per test and recipe: the mean of its votes and its two-way interval, or why there is none.

    `human_mos` is on the scale 1 to 5. `human_ab` is the share that preferred the recipe less the share that
    preferred what it was held against: -1 to 1, 0 for no preference. `runs`: of these alone; `leave_out`: listeners
    not counted.
    """
    votes = votes_frame(store, test, runs)
    counted = votes[(votes["anchor"] == "") & ~votes["rater"].isin(list(leave_out))]
    rows = []
    for (name, metric, recipe, base), group in counted.groupby(["test", "metric", "recipe", "base"]):
        found = two_way_interval(group, confidence)
        rows.append(
            (name, metric, recipe, base, found.mean, found.low, found.high, found.raters, found.items, found.votes,
             found.reason)
        )  # fmt: skip
    frame = pd.DataFrame(rows, columns=list(OPINIONS)).astype(
        dict.fromkeys(("mean", "low", "high"), "float64")
    )
    return frame.sort_values(["test", "mean"], ascending=[True, False]).reset_index(drop=True)


def listeners(store: Store, test: str | None = None, *, runs: Collection[str] | None = None) -> pd.DataFrame:
    """One row per test and listener: the trials that tested them, as shares, null where there were none."""
    votes = votes_frame(store, test, runs)
    rows = []
    for (name, rater), group in votes.groupby(["test", "rater"]):
        anchors = {anchor: part for anchor, part in group.groupby("anchor") if anchor}
        low = _below_plain(group) if "low" in anchors else None
        again = _agrees(group) if "repeat" in anchors else None
        same = float((anchors["null"]["value"] == 0).mean()) if "null" in anchors else None
        remark = "did not hear that the muffled clip was worse" if low is not None and low < 1 else ""
        rows.append((name, rater, len(group), low, again, same, remark))
    shares = dict.fromkeys(("muffled_below", "repeat_within_1", "null_same"), "float64")
    return pd.DataFrame(rows, columns=list(LISTENERS)).astype(shares)


def _below_plain(group: pd.DataFrame) -> float | None:
    """Share of muffled clips that were found worse than the plain one."""
    low = group[group["anchor"] == "low"]
    if (group["metric"] == "human_ab").all():
        return float((low["value"] == -1).mean())
    joined = low.merge(group[group["anchor"] == ""], on=["item", "run_id"], suffixes=("", "_plain"))
    return float((joined["value"] < joined["value_plain"]).mean()) if len(joined) else None


def _agrees(group: pd.DataFrame) -> float | None:
    """Share of clips heard twice whose two ratings lie within one."""
    again = group[group["anchor"] == "repeat"]
    joined = again.merge(group[group["anchor"] == ""], on=["item", "run_id"], suffixes=("", "_first"))
    return float(((joined["value"] - joined["value_first"]).abs() <= 1).mean()) if len(joined) else None
