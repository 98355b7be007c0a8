from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.errors import StoreError
from labkit.report.gate_files import write_gate
from tests.report.gate_factory import gate_result


def test_all_four_files_are_written_whole(tmp_path: Path) -> None:
    written = write_gate(gate_result(damage=0.05), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        ["gate.md", "gate.junit.xml", "gate.json", "gate.html"]
    )
    record = json.loads(written["json"].read_text())
    assert record["outcome"] == "fail" and record["exit_code"] == 1
    worst = [each for each in record["verdicts"] if each["outcome"] == "fail"]
    assert {each["metric"] for each in worst} == {"kl", "hidden_error", "top1"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StoreError, match="--out"):
        write_gate(gate_result(), tmp_path / "taken" / "out")
