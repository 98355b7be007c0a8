"""A gate's four files, written whole: `gate.md`, `gate.junit.xml`, `gate.json`, `gate.html`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from labkit.errors import StoreError
from labkit.report.gate_html import gate_html
from labkit.report.gate_junit import gate_junit
from labkit.report.gate_markdown import gate_markdown
from labkit.report.gate_result import GateResult


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
        folder.mkdir(parents=True, exist_ok=True)
        for kind, text in texts.items():
            target = folder / f"gate.{kind}"
            temporary = folder / f".{target.name}.{os.getpid()}.tmp"
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, target)
            written[kind] = target
    except OSError as error:
        raise StoreError(
            f"the gate's report in {folder} cannot be written ({error}); choose another --out."
        ) from error
    return written
