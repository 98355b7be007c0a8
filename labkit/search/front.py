"""Every mix of precisions that no other mix beats: exact, by one layer after the other.

Sizes, times and divergences of layers add up: so a mix of the first layers that is beaten by one of equal size and time
can never be part of a best mix of all. Pure numbers; it knows no voice and no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What one layer costs in one precision. Whole numbers, so that mixes of equal cost are seen to be equal.

    size: bytes; time: any unit of time; kl: nats; mel2: squared log-mel distance (independent errors add up in
    squares).
    """

    size: int
    time: int
    kl: float
    mel2: float = 0.0


@dataclass(frozen=True)
class Point:
    """A mix: the precision of each layer, and the sums of its costs."""

    precisions: tuple[str, ...]
    size: int
    time: int
    kl: float
    mel2: float

    def beats(self, other: Point) -> bool:
        """No worse in size, time and divergence, and better in one of them."""
        mine, theirs = (self.size, self.time, self.kl), (other.size, other.time, other.kl)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


def front(layers: Sequence[Mapping[str, Cost]]) -> list[Point]:
    """The mixes that none beats, the smallest first. Each layer offers its cost by precision.

    Among mixes of one size and time the least divergent is kept. With layers of one shape there are
    no more states than ways to count precisions: 231 for 20 layers in three.
    """
    points = {(0, 0): Point((), 0, 0, 0.0, 0.0)}
    for layer in layers:
        longer: dict[tuple[int, int], Point] = {}
        for point in points.values():
            for precision, cost in layer.items():
                made = Point(
                    (*point.precisions, precision), point.size + cost.size, point.time + cost.time,
                    point.kl + cost.kl, point.mel2 + cost.mel2,
                )  # fmt: skip
                known = longer.get((made.size, made.time))
                if known is None or made.kl < known.kl:
                    longer[made.size, made.time] = made
        points = longer
    found = [point for point in points.values() if not any(other.beats(point) for other in points.values())]
    return sorted(found, key=lambda point: (point.size, point.kl, point.time))
