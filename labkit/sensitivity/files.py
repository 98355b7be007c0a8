"""Where the table and its charts go when files are asked for; what cannot be written is refused before any work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import UserError
from labkit.sensitivity.chart import sensitivity_bars
from labkit.sensitivity.tables import MAIN_FIGURE

if TYPE_CHECKING:
    import pandas as pd


def check_writable(table: Path | None, charts: Path | None) -> None:
    """UserError for a table that is no .csv, or for a folder that does not exist."""
    if table is not None and table.suffix != ".csv":
        raise UserError(f"--out {table}: the table is written as .csv; name such a file.")
    for option, folder in (("--out", table and table.parent), ("--plots", charts)):
        if folder is not None and not folder.is_dir():
            raise UserError(f"{option}: {folder} is no folder; make it first.")


def write_table(frame: pd.DataFrame, path: Path | None) -> list[Path]:
    """Write the whole table as CSV, a missing figure as an empty field; returns what was written."""
    if path is None:
        return []
    frame.to_csv(path, index=False)
    return [path]


def write_charts(frame: pd.DataFrame, folder: Path | None) -> list[Path]:
    """Write `sensitivity-STAGE.png` for each stage of the table; returns what was written."""
    if folder is None:
        return []
    written = []
    for stage in frame["stage"].unique():
        bits = sorted(frame["bits"].unique(), reverse=True)
        figure = sensitivity_bars(
            frame, stage=stage, metric=MAIN_FIGURE[stage], bits=bits[:: max(1, len(bits) // 2)]
        )
        if figure is not None:
            written.append(folder / f"sensitivity-{stage}.png")
            figure.savefig(written[-1], dpi=144)
    return written
