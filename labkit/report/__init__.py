"""What people read: tables, plots and one self-contained HTML page, made from recorded runs alone.

    summary.py    runs -> groups of comparable rows
    cells.py      what a field shows, and what it says on hover
    ratios.py     one run against another, in words
    tables.py     the summary as a rich table (terminal) and as markdown
    plots.py      the summary as matplotlib figures
    style.py      how figures look: colours, settings, PNG and SVG
    audio.py      clips as players and small spectrogram pictures
    said.py       what the clips of a run say
    opinions.py   what listeners said of the runs
    html.py       all of it on one page
    gate_*.py     the report of a gate: its result, and the four files made of it
    notebook.py   figures and players for notebook cells

No backend is imported: a report renders on a bare machine from a copied results folder.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.report.html import build_report
    from labkit.report.ratios import compare_runs
    from labkit.report.summary import summarize
    from labkit.report.tables import markdown_table, summary_table

# matplotlib and pandas cost half a second: `labkit results list` must not pay for a plot
_LAZY = {
    "build_report": "labkit.report.html",
    "compare_runs": "labkit.report.ratios",
    "markdown_table": "labkit.report.tables",
    "summarize": "labkit.report.summary",
    "summary_table": "labkit.report.tables",
}

__all__ = ["build_report", "compare_runs", "markdown_table", "summarize", "summary_table"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'labkit.report' has no attribute {name!r}; it has {', '.join(_LAZY)}")
    return getattr(importlib.import_module(_LAZY[name]), name)
