"""Arms that do the same work in turns, and what their times say.

In each round every arm does the same number of pieces of work, one arm after the other, in an order that turns from
round to round: a disturbance of seconds falls on neighbours alike. Ratios are taken round by round from the time of
the network alone, CPU time for one thread and wall time for several, and their interval is a bootstrap over rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from labkit.bench.arms import Arm, Tell, Times
from labkit.bench.worker_process import WorkerProcess
from labkit.errors import LabError, UnavailableError
from labkit.measure.roofline import roofline_share, step_bytes

Figures = dict[str, Any]
CONFIDENCE = 0.95
_TIMES = (
    "network_cpu_s",
    "network_wall_s",
    "step_cpu_s",
    "step_wall_s",
    "decoder_cpu_s",
    "vocoder_cpu_s",
)


@dataclass(frozen=True)
class Lane:
    """One arm's place: how to open it, and the lane that it is compared with."""

    name: str
    open: Callable[[], Arm]
    base: str | None
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Course:
    """What every arm does: `takes` pieces of work in each of `rounds`.

    length: positions in the cache on average when `grows`, each piece adding one; else what `Arm.ready` is given.
    clock: the times that ratios and shares are taken from.
    """

    length: int
    takes: int
    rounds: int
    grows: bool = True
    clock: str = "network_cpu_s"

    @property
    def start(self) -> int:
        """Half the run's steps below `length`, so that this is their mean."""
        return max(1, self.length - self.rounds * self.takes // 2) if self.grows else self.length


def race(lanes: Sequence[Lane], course: Course, tell: Tell) -> dict[str, Figures]:
    """Load every arm, take the rounds, and return figures by lane; an arm that cannot go on is a row with a reason.

    The raw times of each round are the row's `rounds`.
    """
    rows: dict[str, Figures] = {}
    arms: dict[str, Arm] = {}
    taken: dict[str, list[Times]] = {}

    def drop(name: str, error: Exception) -> None:
        rows[name] = _excuse(error)
        taken.pop(name, None)
        if name in arms:
            arms.pop(name).close()
        tell(f"bench: {name}: {rows[name]['reason'].splitlines()[0]}")

    try:
        for lane in lanes:
            tell(f"bench: loading {lane.name}")
            try:
                arms[lane.name] = arm = lane.open()
                rows[lane.name] = arm.load() | arm.ready(course.start, (course.rounds + 1) * course.takes)
                arm.take(course.takes)  # a warm-up that no figure sees
                taken[lane.name] = []
            except LabError as error:
                drop(lane.name, error)
        reads = {name: _read_bytes(rows[name], course.length) for name in taken}
        roofs = measure_roofs(lanes, reads, tell)
        for number in range(course.rounds):
            tell(f"bench: round {number + 1} of {course.rounds}")
            for name in _turned(list(taken), number):
                try:
                    taken[name].append(arms[name].take(course.takes))
                except LabError as error:
                    drop(name, error)
        for name in list(taken):
            try:
                rows[name]["rss_run_peak_bytes"] = arms[name].peak_rss_bytes()
            except LabError as error:
                drop(name, error)
    finally:
        for arm in arms.values():
            arm.close()
    again = measure_roofs(lanes, reads, tell)
    for lane in lanes:
        if lane.name in taken:
            roof = max(filter(None, (roofs.get(lane.name), again.get(lane.name))), default=None)
            base = taken.get(lane.base or "")
            rows[lane.name] |= arm_figures(taken[lane.name], base, reads[lane.name], roof, course.clock)
            rows[lane.name] |= {"base": lane.base, "rounds": taken[lane.name]}
    return {lane.name: rows[lane.name] for lane in lanes}


def measure_roofs(lanes: Sequence[Lane], reads: Mapping[str, int | None], tell: Tell) -> dict[str, float]:
    """Reading speed at the size that each lane's step reads, in a process of its own on the same cores."""
    speeds: dict[tuple[tuple[int, ...], int], float] = {}
    found: dict[str, float] = {}
    tell("bench: reading speed of the memory")
    for cores in dict.fromkeys(lane.cores for lane in lanes if reads.get(lane.name)):
        with WorkerProcess(cores) as probe:
            for lane in lanes:
                size = reads.get(lane.name)
                if lane.cores != cores or not size:
                    continue
                if (cores, size) not in speeds:
                    answer = probe.call("bandwidth", buffer_bytes=size, threads=len(cores))
                    speeds[cores, size] = answer["bytes_per_s"]
                found[lane.name] = speeds[cores, size]
    return found


def arm_figures(
    per_round: Sequence[Times],
    base: Sequence[Times] | None,
    read: int | None,
    bytes_per_s: float | None,
    clock: str = "network_cpu_s",
) -> Figures:
    """Times (median and least of all, in seconds), ratio to the base with its interval, roofline share.

    `speedup` is the base's time over this arm's, above 1 is faster.
    """
    figures: Figures = {}
    for name in _TIMES:
        values = [seconds for times in per_round for seconds in times.get(name, ())]
        if values:
            figures |= {name: median(values), f"{name[:-2]}_min_s": min(values)}
    if read is not None:
        share = roofline_share(read, figures[clock], bytes_per_s)
        figures |= {
            "step_read_bytes": read,
            "bandwidth_bytes_per_s": bytes_per_s,
            "roofline_share": share.share,
            "roofline_impossible": share.impossible,
        }
    if base is not None:
        figures["speedup"] = speedup(per_round, base, clock)
        if "step_cpu_s" in figures:
            figures["speedup_with_draw"] = speedup(per_round, base, clock.replace("network", "step"))
    return figures


def speedup(arm: Sequence[Times], base: Sequence[Times], name: str) -> Figures:
    """Geometric mean over rounds of base / arm, each round by its median, with a bootstrap interval."""
    from labkit.compare.statistics import bootstrap_interval

    logs = np.log([median(b[name]) / median(a[name]) for a, b in zip(arm, base, strict=True)])
    if len(logs) < 2 or np.allclose(logs, logs[0]):
        point = float(np.exp(logs.mean()))
        return {"value": point, "low": point, "high": point, "rounds": len(logs)}
    low, high = bootstrap_interval(logs, CONFIDENCE)
    return {
        "value": float(np.exp(logs.mean())),
        "low": float(np.exp(low)),
        "high": float(np.exp(high)),
        "rounds": len(logs),
    }


def _read_bytes(row: Figures, context: int) -> int | None:
    weights, position = row.get("step_weights_bytes"), row.get("kv_row_position_bytes")
    return None if weights is None or position is None else step_bytes(weights, position, context)


def _turned(names: list[str], by: int) -> list[str]:
    by %= max(1, len(names))
    return names[by:] + names[:by]


def _excuse(error: Exception) -> Figures:
    if isinstance(error, UnavailableError):
        return {"status": "unavailable", "reason": f"{error.reason} {error.remedy}"}
    return {"status": "failed", "reason": str(error)}
