"""`labkit gate` and `labkit baseline` on invented scores: exit codes, files, words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from labkit.cli import app, baselines, gating, main
from labkit.gate import gating as gate_module
from labkit.gate import measuring
from labkit.gate.baseline import write_baseline
from tests.gate.factory import MACHINE, FakeProbes, baseline

GATE = """
name: try
corpus: nano-heldout
texts: 30
recipe: [ort-fp32]
tiers: [0, 1, 2]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder with a baseline `base`, and a gate's file beside it."""
    write_baseline(baseline(tmp_path / "baselines" / "base"))
    (tmp_path / "gate.yaml").write_text(GATE)
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(gate_module, "machine_class", lambda environment: MACHINE)
    return tmp_path


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def go(*words: str, change: dict | None = None) -> Result:
        monkeypatch.setattr(measuring, "probe", FakeProbes(change))
        return CliRunner().invoke(app, [*words])

    return go


def test_a_good_voice_passes_and_leaves_four_files(call: Callable[..., Result], folder: Path) -> None:
    result = call("gate", "-b", "base", "--sweep", str(folder / "gate.yaml"), "-o", str(folder / "out"))
    assert result.exit_code == 0, result.output
    assert "PASS" in result.output and "hidden-state error" in result.output
    assert {file.name for file in (folder / "out").iterdir()} == {
        "gate.md", "gate.junit.xml", "gate.json", "gate.html",
    }  # fmt: skip


def test_a_regression_is_exit_code_1_and_json_says_where(call: Callable[..., Result], folder: Path) -> None:
    words = ["gate", "-b", "base", "--sweep", str(folder / "gate.yaml"), "--json"]
    result = call(*words, change={"ort-fp32": {"kl": 0.1}})
    record = json.loads(result.stdout)
    assert result.exit_code == record["exit_code"] == 1
    failed = [(each["recipe"], each["metric"]) for each in record["verdicts"] if each["outcome"] == "fail"]
    assert failed == [("ort-fp32", "kl")]


def test_what_cannot_be_decided_is_exit_code_3_or_let_through(
    call: Callable[..., Result], folder: Path
) -> None:
    (folder / "gate.yaml").write_text(GATE.replace("30", "5"))
    words = ["gate", "-b", "base", "--sweep", str(folder / "gate.yaml"), "--tiers", "1"]
    result = call(*words)
    assert result.exit_code == 3 and "10 are the minimum" in result.output


def test_a_recipe_file_is_gated_instead(call: Callable[..., Result], folder: Path) -> None:
    (folder / "mine.yaml").write_text("hurt: {gpt: {engine: torch, options: {round_bits: 3}}}")
    words = [
        "gate",
        "-b",
        "base",
        "--sweep",
        str(folder / "gate.yaml"),
        "--recipe",
        str(folder / "mine.yaml"),
        "--json",
    ]
    record = json.loads(call(*words).stdout)
    assert {each["recipe"] for each in record["verdicts"]} == {"torch-fp32", "hurt"}
    assert {each["base_recipe"] for each in record["verdicts"]} == {"torch-fp32"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gate", "-b", "none"], "no baseline is in"),
        (["gate", "-b", "base", "--recipe", "ort-fp23"], "recipe 'ort-fp23' is unknown"),
        (["gate", "-b", "base", "--tiers", "7"], "write 0-2"),
        (["gate", "-b", "base", "--sweep", "none.yaml"], "none.yaml"),
        (["baseline", "show", "none"], "no baseline is in"),
    ],
)
def test_misuse_is_exit_code_2(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    if "--sweep" not in words and words[0] == "gate":
        words = [*words, "--sweep", str(folder / "gate.yaml")]
    monkeypatch.setattr("sys.argv", ["labkit", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and message in capsys.readouterr().err.replace("\n", " ")


def test_recording_writes_a_baseline_that_a_gate_takes(call: Callable[..., Result], folder: Path) -> None:
    words = ["baseline", "record", "mine", "--sweep", str(folder / "gate.yaml"), "--no-speed"]
    recorded = call(*words)
    assert recorded.exit_code == 0, recorded.output
    listed = call("baseline", "list")
    assert "mine" in listed.output and "base" in listed.output
    shown = call("baseline", "show", "mine")
    assert "hidden-state error" in shown.output and "ort-fp32" in shown.output
    assert json.loads(call("baseline", "show", "mine", "--json").stdout)["gate"]["tiers"] == [0, 1, 2]


def test_help_has_an_example(call: Callable[..., Result]) -> None:
    for command in (gating.gate, baselines.record, baselines.time_again, baselines.list_all, baselines.show):
        assert "Example: `labkit " in str(command.__doc__)
