from __future__ import annotations

import json

import pytest
from rich.console import Console

from labkit.bench import own, render
from labkit.bench.small import harness_overhead, import_s
from labkit.bench.targets import targets
from labkit.errors import SpecError, UserError
from labkit.voices import Voice


def figures(**changes) -> dict:
    arm = {
        "network_cpu_s": 0.05, "network_cpu_min_s": 0.04, "load_s": 2.0, "rss_peak_bytes": 1.2e9, "weights_bytes": 1e9,
        "size_on_disk_bytes": 1e9, "roofline_share": 0.8, "roofline_impossible": False,
        "speedup": {"value": 1.3, "low": 1.2, "high": 1.4, "rounds": 9},
    }  # fmt: skip
    plain = {
        "voice": "random", "context": 300, "steps": 8, "rounds": 10, "core": 1, "machine": "m", "import_s": 0.1,
        "arms": {"torch-fp32": arm, "upstream": {"reason": "its environment is missing"}},
        "nano": {"cold_cpu_s": 7.0, "warm_cpu_rtf": 0.1}, "harness": {"share": 0.001}, **changes,
    }  # fmt: skip
    return {**plain, "targets": targets(plain)}


def test_targets_are_met_missed_or_not_measured() -> None:
    outcome = {target["name"]: target["met"] for target in figures()["targets"]}
    assert outcome["torch-fp32 step against upstream"] is True
    assert outcome["ort-fp32 step against upstream"] is None
    assert outcome["labkit say on nano, cold: process time, s"] is False
    assert outcome["full-size load: peak RSS / weights (torch-fp32)"] is True


def test_the_table_shows_figures_and_reasons() -> None:
    console = Console(width=220, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render(figures()))
    text = console.export_text()
    assert "1.30 [1.20, 1.40]" in text and "80 %" in text
    assert "its environment is missing" in text and "not measured" in text and "missed" in text


def test_figures_are_json(tiny_voice: Voice) -> None:
    assert json.loads(json.dumps(figures(), allow_nan=False))["arms"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"rounds": 1}, SpecError, "rounds=1"),
        ({"recipes": ("torch-fp33",)}, SpecError, "torch-fp33"),
        ({"core": 4096}, UserError, "4096"),
        ({"context": 250}, SpecError, "256"),
    ],
)
def test_mistakes_are_named_before_any_work(
    tiny_voice: Voice, changes: dict, error: type, words: str
) -> None:
    with pytest.raises(error, match=words):
        own.bench_self(**{"voice": str(tiny_voice.folder), "context": 40, **changes})


def test_the_harness_is_below_a_percent_of_a_nano_utterance(tiny_voice: Voice) -> None:
    """Saying 1.7 s of speech on nano takes some 250 ms of CPU time."""
    found = harness_overhead(str(tiny_voice.folder), 0.25)
    assert found["share"] < 0.01 and found["idle_utterance_s"] > 0


def test_importing_is_timed_in_a_fresh_process() -> None:
    assert 0 < import_s(rounds=1) < 5
