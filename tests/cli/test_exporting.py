from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labkit.cli import app
from labkit.errors import SpecError, UserError
from labkit.voices import Voice


@pytest.fixture
def run(tiny_voice: Voice, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    voice = ["--voice", str(tiny_voice.folder)]
    return lambda *words: CliRunner().invoke(app, ["export", *voice, *words], catch_exceptions=False)


def test_a_stage_is_written_and_told(run, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    answer = run("-o", str(out), "--stage", "decoder", "--json")
    assert answer.exit_code == 0
    told = json.loads(answer.stdout)
    assert told["decoder"]["folder"] == str(out / "decoder")
    assert told["decoder"]["graph"]["opsets"] == {"ai.onnx": 18}
    assert {"network.onnx", "manifest.json"} <= {path.name for path in (out / "decoder").iterdir()}
    with pytest.raises(UserError, match="is not empty"):
        run("-o", str(out))


def test_what_is_unknown_is_named(run, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="precision 'fp9' is unknown; known: fp32, fp16, fp8"):
        run("-o", str(tmp_path / "out"), "--precision", "fp9")
    with pytest.raises(SpecError, match="graph 'best' is unknown; known: ort, portable"):
        run("-o", str(tmp_path / "out"), "--graph", "best")


def test_help_has_an_example() -> None:
    assert "labkit export --voice nano" in CliRunner().invoke(app, ["export", "--help"]).output
