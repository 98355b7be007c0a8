"""`labkit sensitivity` from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from labkit import cli
from labkit.calibration import recordings
from labkit.voices import Voice


def test_the_command_prints_json_with_missing_figures_as_null(
    tiny_voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(recordings, "RANDOM_STEPS", 3)
    options = [
        "--stage",
        "decoder",
        "--bits",
        "4",
        "--texts",
        "10",
        "--corpus",
        "english-calibration",
        "--json",
    ]
    monkeypatch.setattr(sys, "argv", ["labkit", "sensitivity", "--voice", str(tiny_voice.folder), *options])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    rows = json.loads(capsys.readouterr().out)
    assert {row["unit"] for row in rows} >= {"blocks.0", "dwconv", "out_conv", "every block"}
    assert all(row["kl"] is None and row["mel_db"] > 0 and row["bits"] == 4 for row in rows)


def run_command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["labkit", "sensitivity", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_ladder_is_printed_with_its_verdict(
    tiny_voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(recordings, "RANDOM_STEPS", 3)
    asked = [
        "--voice",
        str(tiny_voice.folder),
        "--texts",
        "10",
        "--corpus",
        "english-calibration",
        "--ladder",
    ]
    assert run_command(monkeypatch, *asked) == 0
    printed = capsys.readouterr().out
    assert "prune 50 %" in printed and "In order, within noise." in printed


def test_the_ladder_takes_no_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(monkeypatch, "--ladder", "--stage", "gpt") == 2
    assert "leave out --stage" in capsys.readouterr().err
