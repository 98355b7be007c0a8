from __future__ import annotations

from pathlib import Path

import pytest

from labkit.errors import CheckpointError, InvalidAudioError, UnavailableError, UserError
from labkit.run import tasks
from labkit.run.tasks import (
    BUILD,
    BuildClock,
    EventLog,
    Job,
    JobText,
    Reporter,
    describe,
    status_of,
    user_error,
)
from labkit.spec import Recipe, RunSpec


@pytest.mark.parametrize("recipe", [Recipe(name="r"), Recipe(name="upstream", pipeline="upstream")])
def test_a_job_arrives_as_it_was_sent(tmp_path: Path, recipe: Recipe) -> None:
    spec = RunSpec(recipe=recipe, scenario="replay", texts=2, limits={"seconds": 5.0, "memory_gb": 1.5})
    job = Job(tmp_path, spec, (JobText("a", "三 one"),), "zh", judged=True)
    job.write()
    arrived, spawned_at = Job.read(tmp_path)
    assert arrived == job and spawned_at > 0
    assert arrived.needs_reference


def test_events_come_up_once_and_only_whole(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    log = EventLog(file)
    assert list(log.new()) == []
    reporter = Reporter(file)
    reporter.stage("load", "gpt")
    reporter.values({"load_s": 1.5})
    assert [event["kind"] for event in log.new()] == ["stage", "values"]
    with file.open("a") as half:
        half.write('{"kind": "no')
        half.flush()
        assert list(log.new()) == []
        half.write('te", "text": "x"}\n')
    assert list(log.new()) == [{"kind": "note", "text": "x"}]
    assert list(log.new()) == []


def test_nan_cannot_travel(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        Reporter(tmp_path / "e").values({"rtf": float("nan")})


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UnavailableError("no GPU", "get one"), "unavailable"),
        (InvalidAudioError("silence"), "invalid"),
        (MemoryError(), "oom"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: not enough memory: …"), "oom"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "oom"),
        (ValueError("shape"), "failed"),
        (UserError("bad"), "failed"),
    ],
)
def test_an_exception_means_a_status(error: Exception, status: str) -> None:
    assert status_of(error) == status


def test_a_failure_names_class_message_remedy_and_place() -> None:
    try:
        raise UnavailableError("no CUDA device.", "Use device cpu.")
    except UnavailableError as error:
        fields = describe(error)
    assert fields["type"] == "UnavailableError" and fields["message"] == "no CUDA device."
    assert fields["remedy"] == "Use device cpu." and "test_tasks.py" in fields["traceback"]
    assert not fields["user"]
    assert describe(MemoryError())["message"] == "MemoryError"


def test_another_library_s_reason_is_no_whole_message() -> None:
    with pytest.raises(UnicodeDecodeError) as caught:
        b"caf\xe9".decode()
    assert describe(caught.value)["message"] == str(caught.value) != caught.value.reason


def test_the_user_s_error_comes_back_as_itself() -> None:
    raised = user_error(describe(CheckpointError("Decoder.safetensors: truncated")))
    assert isinstance(raised, CheckpointError) and raised.exit_code == 2
    assert str(raised) == "Decoder.safetensors: truncated"


def test_the_time_of_builds_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, now = BuildClock(), 100.0
    monkeypatch.setattr(tasks.time, "monotonic", lambda: now)
    assert clock.seconds() == 0.0
    for stage, at in (("load", 101.0), (BUILD, 103.0), (BUILD, 110.0), ("reference", 123.0)):
        now = at
        clock.take({"kind": "stage", "name": stage, "detail": ""})
        clock.take({"kind": "note", "text": "by the way"})
    assert clock.seconds() == 20.0
    now = 200.0
    assert clock.seconds() == 20.0
    clock.take({"kind": "stage", "name": BUILD, "detail": ""})
    now = 205.0
    assert clock.seconds() == 25.0
