"""What `labkit train` prints is what the stages said."""

from __future__ import annotations

from typer.testing import CliRunner

from labkit.training import cli


def test_control_tokens_are_printed_as_they_are(monkeypatch) -> None:
    monkeypatch.setattr(cli, "train_nano", lambda say, **_: say("tempo [speed_3]: 1.27"))
    shown = CliRunner().invoke(cli.app, ["nano"])
    assert shown.exit_code == 0 and "tempo [speed_3]: 1.27" in shown.output
