"""What many verdicts come to: one word and one exit code.

It knows verdicts and the order of their weight. It does not know how they were reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from labkit.compare.verdicts import Outcome, Verdict

PASSED, REGRESSION, MISUSE, INCONCLUSIVE = 0, 1, 2, 3


@dataclass(frozen=True)
class Overall:
    """The outcome of a gate. deciding: the verdicts it rests on; counts: how many gated verdicts had each outcome."""

    outcome: Outcome
    exit_code: int
    deciding: tuple[Verdict, ...] = ()
    counts: dict[Outcome, int] = field(default_factory=dict)


def overall(verdicts: Iterable[Verdict], *, inconclusive_exit: int = INCONCLUSIVE) -> Overall:
    """One failure fails; then what is inconclusive or could not be compared keeps the rest from passing.

    fail (exit 1) if any gating verdict failed; not comparable (exit 2) if nothing could be judged at all; inconclusive
    (exit 3, or `inconclusive_exit`: 0 lets it through) if any verdict is, or if a metric that is not optional could
    not be compared; else pass (exit 0). Verdicts that only inform do not count.
    """
    gating = [each for each in verdicts if each.gates]
    counts: dict[Outcome, int] = dict(Counter(each.outcome for each in gating))
    failed = tuple(each for each in gating if each.outcome == "fail")
    if failed:
        return Overall("fail", REGRESSION, failed, counts)
    if counts.get("not comparable", 0) == len(gating):
        return Overall("not comparable", MISUSE, tuple(gating), counts)
    open_ones = tuple(
        each
        for each in gating
        if each.outcome == "inconclusive" or (each.outcome == "not comparable" and not each.margin.optional)
    )
    if open_ones:
        return Overall("inconclusive", inconclusive_exit, open_ones, counts)
    return Overall("pass", PASSED, tuple(gating), counts)
