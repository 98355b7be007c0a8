"""The parent alone: children are played by functions that leave the events real ones would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from labkit.errors import CheckpointError, StoreError, UnavailableError
from labkit.results.store import Store
from labkit.run import longest_run_s, parent, run
from labkit.run.clips import SPOKEN, keep_clip
from labkit.run.document import EVERY_CLIP
from labkit.run.process import Ended
from labkit.run.request import Plan
from labkit.run.tasks import Job, JobText, Reporter, describe, events_file
from labkit.scenarios.base import Take
from labkit.spec import Recipe, RunSpec

TEXTS = (JobText("a", "one"), JobText("b", "two"))
GOOD = Ended(0, None, 1.0)
Child = Callable[[Job, Reporter], Ended]


def prepare(job: Job, reporter: Reporter) -> Ended:
    reporter.stage("build")
    record = {"stage": "gpt", "engine": "torch", "precision": "fp32", "size_bytes": 7, "build_s": 2.0}
    reporter.event("artifact", record={**record, "cached": False, "content_hash": "h", "details": {}})
    return GOOD


def measure(job: Job, reporter: Reporter, *, ended: bool = True) -> Ended:
    reporter.stage("speak")
    reporter.values({"load_s": 0.5, "rss_peak_own_bytes": 10**9})
    for order, text in enumerate(job.texts):
        sample = {"phase": "measured", "repetition": 0, "item": text.id, "order": order, "ended": ended}
        sample |= {"values": {"latency_s": 1.0}, "reasons": {}, "flags": [], "series": {"step_s": [0.1]}}
        reporter.event("sample", record=sample)
        keep_clip(job, SPOKEN, text.id, Take(np.full(2400, 0.1, np.float32), None, ended))
    reporter.event("measured")
    return GOOD


def judge(job: Job, reporter: Reporter) -> Ended:
    row = {"item": "a", "repetition": 0, "metric": "wer", "value": 0.1, "unit": "share"}
    reporter.event("scores", rows=[{**row, "reason": "", "scorer": "wer", "scorer_version": "1"}])
    return GOOD


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Put the given children and plan on; returns what was started, with which memory limit."""
    started: list[tuple[str, int | None]] = []

    def put(children: dict[str, Child] | None = None, *, trained: bool = True, unavailable=None) -> list:
        cast = {"prepare": prepare, "measure": measure, "judge": judge, **(children or {})}

        def watch(
            module: str, folder: Path, *, memory_bytes: int | None = None, on_tick, excused_s, **limits
        ) -> Ended:
            task = module.rpartition(".")[2]
            started.append((task, memory_bytes))
            job, _ = Job.read(folder)
            on_tick(SimpleNamespace(peak_bytes=2 * 10**9))
            ended = cast[task](job, Reporter(events_file(folder, task)))
            on_tick(SimpleNamespace(peak_bytes=2 * 10**9))
            assert (excused_s() > 0) == (
                task == "prepare" and ended is GOOD
            )  # the time of builds counts in no limit
            return ended

        def plan_run(spec: RunSpec) -> Plan:
            voice = SimpleNamespace(for_quality=trained, weights_hash="w")
            return Plan(spec, voice, TEXTS, "en", "c", unavailable, ())

        monkeypatch.setattr(parent, "watch", watch)
        monkeypatch.setattr(parent, "plan_run", plan_run)
        return started

    return put


def spec(**changes) -> RunSpec:
    return RunSpec(recipe=Recipe(name="r"), **changes)


def test_a_good_run_is_recorded_whole(stage, tmp_path: Path) -> None:
    started = stage()
    lines: list[str] = []
    document = run(spec(keep_audio=True), store=tmp_path, sweep="s", progress=lines.append)
    assert document.status == "ok" and document.sweep == "s"
    assert [task for task, _ in started] == ["prepare", "measure", "judge"]
    assert Store(tmp_path).read(document.run_id) == document
    values = document.measures.values
    assert values["build_s"] == 2.0 and values["load_s"] == 0.5
    assert values["rss_peak_bytes"] == 2 * 10**9  # the tree's, larger than the process's own
    assert values["cold_start_s"] is None and document.measures.reasons["cold_start_s"]
    assert [score.value for score in document.quality] == [0.1]
    assert [sample.audio for sample in document.samples] == ["a.flac", "b.flac"]
    assert (tmp_path / "runs" / document.run_id / "a.flac").exists()
    assert lines[0] == "r: build" and lines[-1] == "r: ok"


def test_the_memory_limit_is_the_measured_child_s_alone(stage, tmp_path: Path) -> None:
    started = stage()
    run(spec(limits={"seconds": 9.0, "memory_gb": 1.5}), store=tmp_path)
    assert dict(started) == {"prepare": None, "measure": 1_500_000_000, "judge": None}


def test_what_this_machine_lacks_is_a_row_and_starts_nothing(stage, tmp_path: Path) -> None:
    started = stage(unavailable=UnavailableError("no CUDA device.", "Use device cpu."))
    document = run(spec(), store=tmp_path)
    assert document.status == "unavailable" and started == []
    assert document.failure is not None and document.failure.remedy == "Use device cpu."
    assert document.measures.values["rss_peak_bytes"] is None


@pytest.mark.parametrize("task", ["prepare", "measure"])
def test_a_user_s_error_found_by_a_child_is_raised_and_records_nothing(
    stage, tmp_path: Path, task: str
) -> None:
    def broken(job: Job, reporter: Reporter) -> Ended:
        reporter.event("failure", **describe(CheckpointError("Decoder.safetensors: truncated")))
        return Ended(1, None, 1.0)

    stage({task: broken})
    with pytest.raises(CheckpointError, match="truncated"):
        run(spec(), store=tmp_path)
    assert Store(tmp_path).files() == []


def test_a_child_that_dies_leaves_what_it_had_measured(stage, tmp_path: Path) -> None:
    def dies(job: Job, reporter: Reporter) -> Ended:
        reporter.stage("speak")
        sample = {"phase": "measured", "repetition": 0, "item": "a", "order": 0, "ended": True, "flags": []}
        reporter.event("sample", record={**sample, "values": {"latency_s": 1.0}, "reasons": {}, "series": {}})
        return Ended(-signal.SIGKILL, None, 1.0)

    started = stage({"measure": dies})
    document = run(spec(), store=tmp_path)
    assert document.status == "oom" and len(document.samples) == 1 and len(document.artifacts) == 1
    assert document.failure is not None and document.failure.stage == "speak"
    assert ("judge", None) not in started


def test_a_judge_that_fails_costs_its_scores_only(stage, tmp_path: Path) -> None:
    def half(job: Job, reporter: Reporter) -> Ended:
        judge(job, reporter)
        return Ended(-signal.SIGKILL, "time", 9.0)

    stage({"judge": half})
    document = run(spec(), store=tmp_path)
    assert document.status == "ok"
    scores = {score.metric: score for score in document.quality}
    assert scores["wer"].value == 0.1
    assert scores["dnsmos_ovrl"].value is None and "stopped after" in scores["dnsmos_ovrl"].reason


def test_random_weights_are_timed_and_never_judged(stage, tmp_path: Path) -> None:
    started = stage({"measure": lambda job, reporter: measure(job, reporter, ended=False)}, trained=False)
    document = run(spec(), store=tmp_path)
    assert document.status == "ok" and [task for task, _ in started] == ["prepare", "measure"]
    assert {(score.item, score.value) for score in document.quality} == {(EVERY_CLIP, None)}


def test_speech_that_never_ends_is_invalid_and_still_judged(stage, tmp_path: Path) -> None:
    started = stage({"measure": lambda job, reporter: measure(job, reporter, ended=False)})
    document = run(spec(), store=tmp_path)
    assert (
        document.status == "invalid" and document.failure is not None and document.failure.kind == "hit_max"
    )
    assert ("judge", None) in started


def test_quality_not_asked_for_is_not_made_up(stage, tmp_path: Path) -> None:
    started = stage()
    document = run(spec(quality=False), store=tmp_path)
    assert document.quality == () and [task for task, _ in started] == ["prepare", "measure"]


def test_a_store_that_cannot_be_written_stops_before_any_work(stage, tmp_path: Path) -> None:
    started = stage()
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="--results"):
        run(spec(), store=blocked)
    assert started == []


def test_an_interrupt_records_nothing_and_leaves_no_folder(stage, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    os.mkdir(tmp_path / "temp")

    def interrupted(job: Job, reporter: Reporter) -> Ended:
        raise KeyboardInterrupt

    stage({"measure": interrupted})
    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        run(spec(), store=tmp_path / "store", progress=lines.append)
    assert lines[-1] == "r: interrupted; nothing was recorded"
    assert Store(tmp_path / "store").files() == [] and os.listdir(tmp_path / "temp") == []


def test_a_store_that_fills_up_meanwhile_costs_no_run(stage, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    os.mkdir(tmp_path / "temp")

    def fills(job: Job, reporter: Reporter) -> Ended:
        (tmp_path / "store" / "runs").rmdir()
        (tmp_path / "store" / "runs").touch()
        return measure(job, reporter)

    stage({"measure": fills})
    with pytest.raises(StoreError, match=r"Not a directory.* not lost: move .*\.json into .*runs") as caught:
        run(spec(keep_audio=True), store=tmp_path / "store")
    (unsaved,) = (tmp_path / "temp").glob("labkit-unsaved-*")
    (document,) = Store(unsaved).documents()
    assert document.status == "ok" and document.run_id in str(caught.value)
    assert document.samples and all(sample.audio is None for sample in document.samples)


def test_a_watchdog_outside_can_ask_how_long_a_run_may_take() -> None:
    assert longest_run_s(spec(limits={"seconds": 100.0})) >= 300
