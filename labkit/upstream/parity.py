"""Two sets of answers side by side: how far apart they are, and how far apart they may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labkit.errors import ParityError
from labkit.upstream.cases import Answers

LIMITS = {"logits": 1e-4, "hidden": 1e-4, "mel": 1e-4, "audio": 1e-5}
"""Largest absolute difference by kind of answer; every other kind must be equal."""


@dataclass(frozen=True)
class Check:
    """One compared answer.

    difference: the largest absolute difference, or for a kind that must be equal the number of unequal
    elements; scale: the largest absolute value of upstream's answer, None where that has no meaning.
    """

    name: str
    shape: tuple[int, ...]
    difference: float
    limit: float
    scale: float | None

    @property
    def passed(self) -> bool:
        return self.difference <= self.limit  # False for NaN


def compare(lab: Answers, upstream: Answers) -> list[Check]:
    """Compare answer by answer; `ParityError` when the two sides did not answer the same questions."""
    if lab.keys() != upstream.keys():
        raise ParityError(
            f"answered on one side only: {sorted(lab.keys() ^ upstream.keys())}; ask both sides the same questions."
        )
    return [_check(name, lab[name], upstream[name]) for name in upstream]


def _check(name: str, lab: NDArray[np.generic], upstream: NDArray[np.generic]) -> Check:
    if lab.shape != upstream.shape:
        raise ParityError(f"{name}: the lab answers with shape {lab.shape}, upstream with {upstream.shape}.")
    limit = LIMITS.get(name.rpartition("/")[2])
    if limit is None:
        return Check(name, upstream.shape, float(np.sum(lab != upstream)), 0.0, None)
    wide_lab, wide_upstream = lab.astype(np.float64), upstream.astype(np.float64)
    difference = float(np.abs(wide_lab - wide_upstream).max())
    return Check(name, upstream.shape, difference, limit, float(np.abs(wide_upstream).max()))


def format_table(title: str, checks: Sequence[Check]) -> str:
    """A Markdown table of the checks, for a terminal and for the lab log."""
    lines = [
        f"### {title}",
        "",
        "| compared | shape | largest value | difference | limit | |",
        "|---|---|---:|---:|---:|---|",
    ]
    for check in checks:
        exact = check.scale is None
        scale = "" if check.scale is None else f"{check.scale:.3g}"
        difference = f"{check.difference:.0f} unequal" if exact else f"{check.difference:.1e}"
        limit = "equal" if exact else f"{check.limit:.0e}"
        shape = "x".join(map(str, check.shape)) or "1"
        mark = "ok" if check.passed else "**FAILED**"
        lines.append(f"| {check.name} | {shape} | {scale} | {difference} | {limit} | {mark} |")
    return "\n".join(lines)
