"""Votes of listeners, kept beside the runs they are about: `<store>/ratings/<test>-<rater>.jsonl`, one vote a line.

A vote is appended and synced as it is cast, so a closed notebook loses nothing; a later vote on the same trial takes
the place of the earlier one. It knows files and votes; how a test is made is in `labkit.listening`, intervals are in
`labkit.compare.ratings`.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final, Literal

from labkit.errors import StoreError

Metric = Literal["human_mos", "human_ab"]
RANGES: Final[dict[str, tuple[int, int]]] = {"human_mos": (1, 5), "human_ab": (-1, 1)}
"""Mean opinion: 5 excellent to 1 bad (ITU-T P.800). Preference: 1 for the run, -1 for the one it is held against."""


@dataclass(frozen=True)
class Vote:
    """One listener's answer to one trial.

    `run_id` and `recipe` are what was judged; `against` and `base` the run and recipe it was held against, empty for
    a lone clip. `anchor` names a trial that tests the listener and not a recipe: `low`, `repeat`, `null`; empty for
    the others. `at`: UTC, ISO 8601.
    """

    test: str
    trial: str
    metric: str
    rater: str
    item: str
    run_id: str
    recipe: str
    value: int
    at: str
    against: str = ""
    base: str = ""
    anchor: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, wanted = getattr(self, field.name), int if field.name == "value" else str
            if type(value) is not wanted:
                raise ValueError(f"{field.name} {value!r} is not of type {wanted.__name__}")
        low, high = RANGES.get(self.metric, (1, 0))
        if not low <= self.value <= high:
            raise ValueError(f"value {self.value} of metric {self.metric!r} is not in {low}..{high}")


def ratings_file(store: Path, test: str, rater: str) -> Path:
    """Where a listener's votes on a test lie. The name is made safe, and kept apart from any that reads alike."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", rater).strip("-").lower()[:24]
    return store / "ratings" / f"{test}-{plain or 'listener'}-{zlib.crc32(rater.encode()):08x}.jsonl"


def append_votes(store: Path, votes: Iterable[Vote]) -> None:
    """Keep votes for good, in order; `StoreError` when they cannot be written."""
    for vote in votes:
        path = ratings_file(store, vote.test, vote.rater)
        line = json.dumps(asdict(vote), ensure_ascii=False) + "\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab+") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    line = (
                        line if file.read(1) == b"\n" else "\n" + line
                    )  # a vote was cut off while being written
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"the vote cannot be written to {path} ({error}); "
                "free disk space or choose another folder with --results."
            ) from error


def read_votes(store: Path) -> tuple[list[Vote], list[str]]:
    """The last vote of every listener on every trial, in order of casting, and each line that cannot be read."""
    last: dict[tuple[str, str, str], Vote] = {}
    problems = []
    for path in sorted((store / "ratings").glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            if not line.strip():
                continue
            try:
                vote = Vote(**json.loads(line))
            except (TypeError, ValueError) as error:
                problems.append(f"{path}, line {number}: {error}")
                continue
            key = vote.test, vote.rater, vote.trial
            last.pop(key, None)
            last[key] = vote
    return list(last.values()), problems
