"""The command line: help, exit codes, words for wrong requests, JSON for machines."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import cli
from labkit.errors import UserError
from labkit.results.store import Store
from tests.results.factory import document

COMMANDS = [
    ["say"], ["run"], ["sweep"], ["report"], ["compare"], ["recipes"], ["doctor"], ["sensitivity"], ["bench", "self"],
    ["bench", "peers"],
    ["voices", "list"], ["voices", "show"], ["voices", "random"], ["results", "list"], ["results", "show"],
    ["gate"], ["faults"], ["baseline", "record"], ["baseline", "list"], ["baseline", "show"], ["train", "nano"],
]  # fmt: skip

GATE = str(Path(__file__).parent.parent / "sweeps/gate.yaml")
READING = [
    ["results", "list"], ["results", "show", "x"], ["report"], ["compare", "x", "y"], ["baseline", "list"],
    ["baseline", "show", "x"], ["faults"], ["bench", "peers"],
    ["listen", "results"], ["gate", "--baseline", "x", "--sweep", GATE],
]  # fmt: skip


def labkit(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["labkit", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_helps_with_an_example(command, monkeypatch, capsys) -> None:
    assert labkit(*command, "--help", monkeypatch=monkeypatch) == 0
    assert "Example" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["say", "one", "--recipe", "torch-fp23"], ["torch-fp23", "did you mean 'torch-fp32'"]),
        (["say", "one", "--voice", "nanoo"], ["nanoo", "nano"]),
        (["say", "one", "--speaker", "nobody"], ["nobody"]),
        (["say", "one", "--audio-path", "both"], ["both", "hidden", "codes"]),
        (["say", "one", "-o", "no/such/folder/x.wav"], ["no/such/folder"]),
        (["say", "one", "-o", "x.mp7"], ["mp7"]),
        (["say", ""], ["empty"]),
        (["say", "?!…"], ["?!…"]),
        (["say", "[uv_break]"], ["[uv_break]"]),
        (["say", "one " * 5000], ["20000", "characters"]),
        (["run", "torch-fp32", "--scenario", "doubles"], ["doubles", "replay"]),
        (["run", "torch-fp32", "--corpus", "nanno-eval"], ["nanno-eval", "nano-eval"]),
        (["run", "torch-fp32", "--device", "gpu7"], ["gpu7", "cuda"]),
        (["run", "torch-fp32", "--recipes", "nowhere.yaml"], ["nowhere.yaml"]),
        (
            ["run", "torch-fp32", "--results", "/dev/null"],
            ["/dev/null", "choose another folder with --results"],
        ),
        (["sweep", "nowhere.yaml"], ["nowhere.yaml"]),
        (["sensitivity", "-o", "no/such/folder/x.csv"], ["no/such/folder"]),
        (["sensitivity", "-o", "x.xlsx"], ["x.xlsx", ".csv"]),
        (["voices", "show", "nanoo"], ["nanoo"]),
        *(
            ([*command, "--results", __file__], [f"{__file__} is a file", "choose another folder"])
            for command in READING
        ),
        (["results", "show", "no-such-run"], ["no-such-run"]),
        (["results", "list", "--sweep", "no-such-sweep"], ["no-such-sweep", "recorded sweeps"]),
        (["report", "no-such-sweep"], ["no-such-sweep", "recorded sweeps"]),
        (["say", "one", "--device", "tpu"], ["tpu", "cuda"]),
        (["say", "one", "--threads", "100000"], ["100000", "256"]),
        (["say", "one", "--seed", str(2**63)], [str(2**63), "give a number from 0 to"]),
        (["say", "one", "--speaker", "x" * 5000], ["'" + "x" * 60 + "…'", "named speakers"]),
        (["recipes", "--device", "tpu"], ["tpu", "cuda"]),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_a_wrong_request_is_worded_and_exits_2(arguments, words, monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    assert labkit(*arguments, monkeypatch=monkeypatch) == 2
    shown = capsys.readouterr()
    for word in words:
        assert word in shown.err
    assert "Traceback" not in shown.err
    assert not list(tmp_path.rglob("*.wav"))


def test_a_typo_in_a_sweep_names_file_line_and_key(monkeypatch, capsys, tmp_path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: x\nrecipe: [torch-fp32]\nscenarios: [replay]\n")
    assert labkit("sweep", str(file), monkeypatch=monkeypatch) == 2
    assert (
        f"{file}, line 3: unknown key 'scenarios' (did you mean 'scenario'?); known"
        in capsys.readouterr().err
    )


def test_control_tokens_in_a_table_are_shown(monkeypatch, capsys) -> None:
    assert labkit("voices", "show", "nano", monkeypatch=monkeypatch) == 0
    assert "[uv_break]" in capsys.readouterr().out


def test_a_sweep_can_be_made_another_and_shorter(monkeypatch, capsys, tmp_path) -> None:
    importlib.import_module("labkit.sweep")
    asked = []

    def instead(spec, **_):
        asked.append(spec)
        raise UserError("seen")

    monkeypatch.setattr(sys.modules["labkit.sweep"], "sweep", instead)
    file = tmp_path / "mine.yaml"
    file.write_text("name: x\nrecipe: [torch-fp32]\ntexts: 9\nrepeats: 5\n")
    options = ["--voice", "random", "--scenario", "replay", "--texts", "2", "--repeats", "1"]
    assert labkit("sweep", str(file), *options, monkeypatch=monkeypatch) == 2
    (spec,) = asked
    assert (spec.voice, spec.scenario, spec.texts, spec.repeats) == (("random",), ("replay",), 2, 1)


def test_json_output_is_one_value_and_nothing_else(monkeypatch, capsys) -> None:
    assert labkit("recipes", "--json", monkeypatch=monkeypatch) == 0
    recipes = json.loads(capsys.readouterr().out)
    assert recipes["torch-fp32"]["availability"] == {"note": ""}
    assert recipes["ort-int8-dynamic"]["gpt"]["precision"] == "int8-dynamic"


def test_an_empty_store_is_an_empty_table(monkeypatch, capsys, tmp_path) -> None:
    assert labkit("results", "list", "--results", str(tmp_path), "--json", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_comparing_unlike_runs_is_told_by_the_exit_code(monkeypatch, capsys, tmp_path) -> None:
    store = Store(tmp_path)
    for name in ("torch-fp32", "ort-fp32"):
        store.write(document(name))
    store.write(document("torch-bf16", machine_class="another"))
    like = ("compare", "torch-fp32", "ort-fp32", "--results", str(tmp_path))
    unlike = ("compare", "torch-fp32", "torch-bf16", "--results", str(tmp_path))
    assert labkit(*like, monkeypatch=monkeypatch) == 0
    capsys.readouterr()
    assert labkit(*unlike, "--json", monkeypatch=monkeypatch) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["verdict"] == "not comparable" and "machine class differs" in row["why"]


def test_say_writes_audio_and_times(monkeypatch, capsys, tmp_path) -> None:
    out = tmp_path / "out.wav"
    assert labkit("say", "three one four", "-o", str(out), "--json", monkeypatch=monkeypatch) == 0
    spoken = json.loads(capsys.readouterr().out)
    assert out.stat().st_size > 10_000
    assert spoken["rtf"] == pytest.approx(spoken["latency_s"] / spoken["audio_s"])


def test_words_outside_the_domain_are_named_and_spoken_anyway(monkeypatch, capsys, tmp_path) -> None:
    out = tmp_path / "out.wav"
    assert labkit("say", "one zebra two", "-o", str(out), monkeypatch=monkeypatch) == 0
    assert "zebra" in capsys.readouterr().err
    assert out.is_file()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_exits_130(tmp_path: Path) -> None:
    code = (
        "import time, labkit.cli as c\n"
        "c.app.command('wait')(lambda: (print('started', flush=True), time.sleep(60)))\n"
        "c.main()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, "wait"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == b"started\n"
    child.send_signal(signal.SIGINT)
    _, shown = child.communicate(timeout=60)
    assert child.returncode == 130
    assert b"Traceback" not in shown
