"""Timed processes: what they are told, what is kept of them, and a busy loop that is really busy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit import voices
from labkit.errors import LabError
from labkit.faults import timing
from labkit.faults.timed import Slowed, injected
from labkit.faults.work import Work
from labkit.gate.figures import Forced
from labkit.gate.order import ForcedClip, save_forced
from labkit.gate.spec import GateSpec
from labkit.run.process import Ended
from labkit.run.tasks import Job, Reporter, events_file
from labkit.scenarios.base import FirstAudio, IntArray, Take
from labkit.voices import Voice

GATE = GateSpec(name="g", corpus="nano-smoke", texts=2, recipe=("ort-fp32",), max_steps=24)
Child = Callable[[Job, Reporter, dict[str, float]], int]


@pytest.fixture
def work(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Work:
    import dataclasses

    good = dataclasses.replace(tiny_voice, card=dataclasses.replace(tiny_voice.card, for_quality=True))
    monkeypatch.setattr(voices, "resolve_voice", lambda name: good)
    made = Work(tmp_path / "work", GATE, ())
    silent, codes = np.zeros(9, np.float32), np.zeros((3, 4), np.int64)
    for number in range(2):
        save_forced(made.folder, number, ForcedClip(Forced(silent, silent), codes, silent, silent, silent))
    return made


def children(monkeypatch: pytest.MonkeyPatch, child: Child) -> list[dict[str, float]]:
    """Stand-ins for the processes; returns what each was told to do on purpose."""
    told: list[dict[str, float]] = []

    def watch(module: str, folder: Path, *, log: Path, **limits: Any) -> Ended:
        log.write_text("")
        told.append(dict(injected(folder)))
        job, _ = Job.read(folder)
        return Ended(child(job, Reporter(events_file(folder, "timed")), told[-1]), None, 0.1)

    monkeypatch.setattr(timing, "watch", watch)
    return told


def well(job: Job, reporter: Reporter, extra: dict[str, float]) -> int:
    for repetition in range(3):
        for text in job.texts:
            slow = 4 if repetition == 1 else 1  # one disturbed repetition
            cpu_s = slow * 0.5 * (1 + extra.get("slow_share", 0.0))
            reporter.event(
                "sample", repetition=repetition, item=text.id, cpu_s=cpu_s, cpu_yardsticks=cpu_s / 0.02,
                latency_s=1.0, steps=10,
            )  # fmt: skip
    reporter.event("memory", rss_peak_bytes=1000 + extra.get("ballast_bytes", 0), ballast_bytes=0)
    return 0


def test_heads_are_slowed_and_grown_by_shares_of_the_base(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = children(monkeypatch, well)
    said: list[str] = []
    timing.time_processes(work, 2, 1, said.append)
    slow, large = {"slow_share": 0.15}, {"ballast_bytes": pytest.approx(200)}
    assert told == [{}, {}, {}, {}, slow, slow, large]
    assert said[0] == "1/7 time a fresh process: torch-fp32, base-00" and len(said) == 7
    (slower,), (larger,) = (timing.processes(work, "torch-fp32", kind) for kind in ("slower", "larger"))
    for recipe in timing.TIMED:
        assert [each.median_s for each in timing.processes(work, recipe, "base")] == [1.0, 1.0]
    assert slower.median_yardsticks == pytest.approx(57.5)
    assert slower.median_s == pytest.approx(1.15) and slower.cpu_s[1] > 4 and larger.rss_peak_bytes == 1200
    assert slower.core_share == pytest.approx(0.575)
    timing.time_processes(work, 2, 1, said.append)
    assert len(told) == 7 and len(said) == 7  # nothing is timed twice


def test_other_clocks_time_anew_and_keep_what_was_judged(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    from labkit.faults import work as module

    hashes, before = module.sources_hash, work.timings
    monkeypatch.setattr(
        module, "sources_hash", lambda *units: "0" * 16 if "measure" in units else hashes(*units)
    )
    other = Work(work.root, work.gate, work.seeds)
    assert other.folder == work.folder and other.timings != before
    told = children(monkeypatch, well)
    for each in (work, other):
        timing.time_processes(each, 1, 1, lambda line: None)
    assert len(told) == 10


def test_slowed_processes_come_in_turns_with_ordinary_ones(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = children(monkeypatch, well)
    timing.time_processes(work, 4, 2, lambda line: None)
    kinds = [next(iter(each), "base") for each in told]
    assert kinds == ["base"] * 4 + ["slow_share"] * 2 + ["ballast_bytes"] + kinds[:7]


def test_a_process_that_fails_is_an_error_with_its_name(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(job: Job, reporter: Reporter, extra: dict[str, float]) -> int:
        reporter.event("failure", message="no such voice", remedy="Choose another.", status="failed")
        return 1

    children(monkeypatch, broken)
    with pytest.raises(LabError, match=r"timing torch-fp32, base-00: no such voice Choose another\."):
        timing.time_processes(work, 1, 1, lambda line: None)


def busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_the_busy_loop_burns_a_share_of_what_the_process_used(tmp_path: Path) -> None:
    class Speaker:
        def speak(self, text: str, codes: IntArray | None) -> Take:
            busy(0.05)
            return Take(np.zeros(3, np.float32), codes, ended=True)

        def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
            return FirstAudio(None, text)

    slowed = Slowed(Speaker(), 0.5)
    before = time.process_time()
    for _ in range(4):
        assert slowed.speak("one", None).ended
        busy(0.02)  # what is done between utterances is not paid for
    used = time.process_time() - before
    assert used == pytest.approx(4 * (0.05 * 1.5 + 0.02), rel=0.05)
    assert slowed.first_audio("one", None).reason == "one"
    (tmp_path / "injected.json").write_text(json.dumps({"slow_share": 1}))
    assert injected(tmp_path) == {"slow_share": 1} and injected(tmp_path / "none") == {}
