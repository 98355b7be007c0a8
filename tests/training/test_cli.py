"""`labkit train nano` sends each corpus to its own stages and refuses what does not exist."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from labkit.errors import UserError
from labkit.training import domain_speech
from labkit.training.cli import app


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corpus", "klingon"], "'klingon' is unknown; corpora to train on: digits, domain"),
        (["--corpus", "domain", "--stage", "gpt"], "'gpt' does not exist for the domain corpus"),
        (["--corpus", "domain", "--evaluate"], "'evaluate' does not exist for the domain corpus"),
        (["--corpus", "domain", "--smoke"], "--smoke is for --corpus digits"),
    ],
)
def test_what_a_corpus_does_not_have_is_refused(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["nano", *arguments])
    assert isinstance(result.exception, UserError) and message in str(result.exception)


def test_the_domain_is_spoken_and_checked_in_the_cache_unless_told_otherwise(monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(
        domain_speech, "run_stages", lambda stages, calib, **options: asked.append((tuple(stages), options))
    )
    assert CliRunner().invoke(app, ["nano", "--corpus", "domain", "--items", "48"]).exit_code == 0
    (stages, options) = asked[0]
    assert stages == ("data", "check") and options["folder"] is None and options["items"] == 48
