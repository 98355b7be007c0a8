"""A gate's four files, written whole: `gate.md`, `gate.junit.xml`, `gate.json`, `gate.html`."""

from __future__ import annotations

import json
from pathlib import Path

from labkit.errors import StoreError
from labkit.report.gate_html import gate_html
from labkit.report.gate_junit import gate_junit
from labkit.report.gate_markdown import gate_markdown
from labkit.report.gate_result import GateResult
from labkit.results.store import write_atomic


def write_gate(result: GateResult, folder: Path) -> dict[str, Path]:
    """Write all files into a folder; returns them by kind. `StoreError` when they cannot be written."""
    texts = {
        "md": gate_markdown(result),
        "junit.xml": gate_junit(result),
        "json": json.dumps(result.record(), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        "html": gate_html(result),
    }
    written = {}
    try:
        for kind, text in texts.items():
            written[kind] = folder / f"gate.{kind}"
            write_atomic(written[kind], text.encode())
    except OSError as error:
        raise StoreError(
            f"the gate's report in {folder} cannot be written ({error}); choose another --out."
        ) from error
    return written
