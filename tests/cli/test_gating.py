from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from labkit.cli import app
from labkit.errors import LabError
from labkit.gate import baseline


def test_a_damaged_baseline_is_no_regression(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / baseline.DESCRIPTION).write_text('{"name": "cut o')
    with pytest.raises(LabError, match=r"cannot be read.*There is no verdict") as refused:
        CliRunner().invoke(app, ["gate", "-b", str(folder)], catch_exceptions=False)
    assert refused.value.exit_code == 2
