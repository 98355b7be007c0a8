"""`labkit train nano` hands its options on and refuses what does not exist."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from labkit.errors import UserError
from labkit.training import STAGES
from labkit.training import cli as module


def test_an_unknown_stage_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(module.app, ["nano", "--stage", "gtp"])
    assert isinstance(result.exception, UserError) and ", ".join(STAGES) in str(result.exception)


def test_options_reach_the_training(monkeypatch, tmp_path: Path) -> None:
    asked: list[dict] = []
    monkeypatch.setattr(module, "train_nano", lambda **options: asked.append(options))
    for arguments in (
        ["--resume"],
        ["--evaluate", "--out", str(tmp_path)],
        ["--stage", "gpt", "--stage", "pack"],
    ):
        assert CliRunner().invoke(module.app, ["nano", *arguments]).exit_code == 0
    assert [options["stages"] for options in asked] == [list(STAGES), ["evaluate"], ["gpt", "pack"]]
    assert asked[0]["resume"] and asked[1]["out"] == tmp_path and asked[0]["speech"] is None


def test_control_tokens_are_printed_as_they_are(monkeypatch) -> None:
    monkeypatch.setattr(module, "train_nano", lambda say, **_: say("tempo [speed_3]: 1.27"))
    shown = CliRunner().invoke(module.app, ["nano"])
    assert shown.exit_code == 0 and "tempo [speed_3]: 1.27" in shown.output
