"""What a field of a table shows, says on hover and means: a number, a ratio, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labkit.compare import Comparison
from labkit.report.ratios import speedup_hint, speedup_words
from labkit.results.frames import WideRow
from labkit.results.schema import RunDocument
from labkit.results.units import MISSING, QUANTILES, base_name, describe, format_value

Tone = Literal["", "better", "worse", "unsure", "missing"]


@dataclass(frozen=True)
class Cell:
    """What one field shows, what it says on hover, and how it is meant."""

    text: str
    hint: str = ""
    tone: Tone = ""


def value_cell(document: RunDocument, row: WideRow, column: str) -> Cell:
    value = row.numbers.get(column)
    if value is None:
        return Cell(MISSING, _why_missing(document, row, column), "missing")
    text = format_value(column, value)
    if column.endswith("_p50"):
        name = base_name(column)
        tails = ", ".join(
            f"p{q} {format_value(name, row.numbers.get(f'{name}_p{q}'))}" for q in QUANTILES[1:]
        )
        return Cell(text, f"median of {row.numbers.get('samples_n', 0):.0f} samples; {tails}")
    if column.endswith("_mean"):
        return Cell(
            text,
            f"mean of {row.numbers.get(f'{base_name(column)}_n', 0):.0f} clips; {describe(column).meaning}",
        )
    return Cell(text, describe(column).meaning)


def _why_missing(document: RunDocument, row: WideRow, column: str) -> str:
    if column in row.reasons:
        return row.reasons[column]
    if document.failure is not None:
        return f"{document.status}: {document.failure.message}"
    return "not measured in this run"


def speed_cell(speed: Comparison | None, document: RunDocument, *, is_baseline: bool) -> Cell:
    if is_baseline:
        return Cell("baseline", "the other rows are compared with this one")
    if document.failure is not None:
        return Cell(MISSING, document.failure.message, "missing")
    if speed is None or speed.improvement is None:
        why = "; ".join(speed.reasons) if speed is not None else "the baseline has no run in this group"
        return Cell(MISSING, f"not comparable: {why}", "missing")
    tones: dict[str, Tone] = {"better": "better", "worse": "worse", "inconclusive": "unsure"}
    return Cell(speedup_words(speed), speedup_hint(speed), tones.get(speed.verdict, ""))
