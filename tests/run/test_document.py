from __future__ import annotations

import signal

import pytest

from labkit.run.document import EVERY_CLIP, Findings, audio_name, ending, missing_scores, verdict
from labkit.run.process import Ended
from labkit.spec import Limits

LIMITS = Limits(seconds=5, memory_gb=2)


def sample(
    item: str = "a", *, ended: bool = True, phase: str = "measured", repetition: int = 0, flags=()
) -> dict:
    record = {
        "phase": phase,
        "repetition": repetition,
        "item": item,
        "order": 0,
        "ended": ended,
        "flags": list(flags),
    }
    return {"kind": "sample", "record": record | {"values": {"latency_s": 1.0}, "reasons": {}, "series": {}}}


def findings(*events: dict) -> Findings:
    found = Findings()
    for event in events:
        found.take(event)
    return found


def test_what_was_measured_before_a_kill_is_kept() -> None:
    found = findings({"kind": "stage", "name": "speak", "detail": ""}, sample(), sample("b"))
    found.failure = ending(Ended(-signal.SIGKILL, None, 3.0), "measure", LIMITS, "")
    status, failure = verdict(found, trained=True)
    assert status == "oom" and failure is not None and failure.stage == "speak"
    assert len(found.recorded_samples()) == 2


@pytest.mark.parametrize(
    ("ended", "status", "kind"),
    [
        (Ended(-9, "time", 5.0), "timeout", "TimeLimit"),
        (Ended(-9, "memory", 5.0), "oom", "MemoryLimit"),
        (Ended(-9, None, 5.0), "oom", "SIGKILL"),
        (Ended(-9, None, 5.0, oom_kills=1), "oom", "SIGKILL"),
        (Ended(-9, None, 5.0, oom_kills=0), "failed", "SIGKILL"),
        (Ended(-signal.SIGSEGV, None, 5.0), "failed", "SIGSEGV"),
        (Ended(1, None, 5.0), "failed", "ExitCode"),
    ],
)
def test_an_ending_means_a_status(ended: Ended, status: str, kind: str) -> None:
    event = ending(ended, "measure", LIMITS, "last words")
    assert event is not None and (event["status"], event["type"]) == (status, kind)
    assert event["message"].startswith("measure")


def test_a_good_ending_is_none() -> None:
    assert ending(Ended(0, None, 1.0), "measure", LIMITS, "") is None


def test_speech_that_never_ends_is_invalid_for_a_trained_voice_only() -> None:
    found = findings(sample(ended=False), sample("b", ended=False), sample("c"))
    status, failure = verdict(found, trained=True)
    assert status == "invalid" and failure is not None and "2 of 3" in failure.message
    assert verdict(found, trained=False) == ("ok", None)


def test_one_of_many_that_hits_the_maximum_is_no_invalid_run() -> None:
    found = findings(sample(ended=False), sample("b"), sample("c"))
    assert verdict(found, trained=True) == ("ok", None)


def test_flags_of_the_audio_join_the_sample_that_was_kept() -> None:
    found = findings(
        sample(phase="warmup"), sample(flags=["retried_start"]), sample(repetition=1),
        {"kind": "flags", "item": "a", "flags": ["clipped"]},
    )  # fmt: skip
    warmup, first, second = found.recorded_samples(["a.flac"])
    assert first.flags == ("retried_start", "clipped") and first.audio == "a.flac"
    assert warmup.flags == second.flags == () and warmup.audio is second.audio is None


def test_a_number_nobody_made_is_null_with_a_reason() -> None:
    found = findings({"kind": "values", "values": {"load_s": 2.0}, "reasons": {}})
    found.set_missing(["load_s", "cold_start_s"], "the run stopped")
    measures = found.measures()
    assert measures.values == {"load_s": 2.0, "cold_start_s": None}
    assert measures.reasons == {"cold_start_s": "the run stopped"}


def test_missing_quality_names_every_metric_once() -> None:
    scores = missing_scores("random weights")
    assert {score.reason for score in scores} == {"random weights"}
    assert {score.item for score in scores} == {EVERY_CLIP}
    metrics = [score.metric for score in scores]
    assert "wer" in metrics and len(set(metrics)) == len(metrics)


def test_audio_names_are_plain_file_names() -> None:
    assert audio_name("nano-eval/07 x") == "nano-eval-07-x.flac"
