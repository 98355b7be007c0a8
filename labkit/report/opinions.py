"""What listeners said of the runs on a page, test by test, with two-way intervals drawn on the scale of the question.

It arranges `labkit.compare.opinions` for `page.html.j2`. Proxies are never on these scales.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.compare.opinions import listeners, opinions, votes_frame
from labkit.results.ratings import RANGES
from labkit.results.store import Store
from labkit.results.units import MISSING

QUESTIONS = {
    "human_mos": ("Mean opinion", ("1 bad", "3 fair", "5 excellent")),
    "human_ab": ("Preference", ("-1 the other", "0 none", "1 this recipe")),
}
"""Metric -> what was asked, and the words under the ends and the middle of its scale."""


@dataclass(frozen=True)
class Opinion:
    """One row. mean: in words; span: the interval, or why there is none. place, left, width: of the mean and of its
    interval on the scale, percent; width is 0 without an interval."""

    recipe: str
    against: str
    colour: str
    mean: str
    span: str
    place: float
    left: float
    width: float
    counts: str


@dataclass(frozen=True)
class Ballot:
    """One listening test. scale: words below its ends and middle; remarks: on listeners who failed a trial that
    tested them."""

    title: str
    metric: str
    scale: tuple[str, ...]
    rows: tuple[Opinion, ...]
    remarks: tuple[str, ...]


def ballots(store: Store, runs: Collection[str], colours: Mapping[str, str]) -> tuple[list[Ballot], str]:
    """Every test of these runs, and a sentence on votes about other runs, which are not shown; empty when there
    are none. Votes of earlier runs of a recipe are other runs: what was heard then may sound otherwise today."""
    found = opinions(store, runs=runs)
    people: Any = listeners(store, runs=runs)
    made = []
    for key, rows in found.groupby(["test", "metric"], sort=True):
        test, metric = map(str, key)
        question, scale = QUESTIONS[metric]
        remarks = [
            f"{person.rater} {person.remark}; the votes are counted all the same"
            for person in people[people["test"] == test].itertuples()
            if person.remark
        ]
        rated = tuple(_opinion(row, metric, colours) for row in rows.itertuples())
        made.append(Ballot(f"{question} · test {test}", metric, scale, rated, tuple(remarks)))
    elsewhere = len(votes_frame(store)) - len(votes_frame(store, runs=runs))
    verb = "is" if elsewhere == 1 else "are"
    return (
        made,
        f"{_count(elsewhere, 'vote')} {verb} about runs that are not on this page." if elsewhere else "",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _opinion(row: Any, metric: str, colours: Mapping[str, str]) -> Opinion:
    low, high, mean = (float(getattr(row, name)) for name in ("low", "high", "mean"))
    known = low == low  # no interval is NaN
    least, most = RANGES[metric]

    def percent(value: float) -> float:
        return round(100 * (min(max(value, least), most) - least) / (most - least), 1)

    left, right = (percent(low), percent(high)) if known else (0.0, 0.0)
    recipe = str(row.recipe)
    return Opinion(
        recipe=recipe, against=str(row.against), colour=colours.get(recipe, ""),
        mean=f"{mean:+.2f}" if metric == "human_ab" else f"{mean:.2f}",
        span=f"{low:.2f} to {high:.2f}" if known else f"{MISSING} {row.reason}",
        place=percent(mean), left=left, width=round(right - left, 1),
        counts=", ".join(_count(int(getattr(row, noun + "s")), noun) for noun in ("listener", "text", "vote")),
    )  # fmt: skip
