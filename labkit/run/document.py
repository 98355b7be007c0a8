"""What came back from the children, folded into one `RunDocument`.

It knows events and the schema. It decides the status: the first thing that went wrong says it; a run that went
well but whose speech is no speech is `invalid`. What a killed child had already measured is kept.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from labkit.results.schema import ArtifactRecord, ClipScore, Failure, Measures, RunStatus, Sample
from labkit.run.process import Ended
from labkit.run.tasks import Event
from labkit.spec import Limits

EVERY_CLIP = "*"  # the item of a score that is missing for all clips alike
_NEVER_ENDED = "hit_max"
# what a table shows of every run: null with a reason when the run never came so far
_EXPECTED = (
    "load_s",
    "cold_start_s",
    "rss_peak_bytes",
    "vram_peak_bytes",
    "bandwidth_bytes_per_s",
    "roofline_share",
)


@dataclass
class Findings:
    """Everything the children of one run have reported so far."""

    stage: str = "prepare"
    values: dict[str, float | int | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    artifacts: list[ArtifactRecord] = field(default_factory=list)
    placement: dict[str, dict[str, int]] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    clip_flags: dict[str, list[str]] = field(default_factory=dict)
    quality: list[ClipScore] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    measured: bool = False
    failure: Event | None = None

    def take(self, event: Event) -> None:
        """Fold one event of any child in."""
        match event["kind"]:
            case "stage":
                self.stage = event["name"]
            case "values":
                self.values |= event["values"]
                self.reasons |= event["reasons"]
            case "artifact":
                self.artifacts.append(ArtifactRecord(**event["record"]))
            case "placement":
                self.placement = event["stages"]
            case "sample":
                self.samples.append(event["record"])
            case "flags":
                self.clip_flags[event["item"]] = event["flags"]
            case "scores":
                self.quality += [ClipScore(**row) for row in event["rows"]]
            case "note":
                self.notes.append(event["text"])
            case "measured":
                self.measured = True
            case "failure":
                self.failure = event

    def set_missing(self, names: Iterable[str], reason: str) -> None:
        """Null, with its reason, for each named measure that nobody reported."""
        for name in names:
            if self.values.get(name) is None:
                self.values[name] = None
                self.reasons.setdefault(name, reason)

    def measures(self) -> Measures:
        return Measures(values=self.values, reasons=self.reasons)

    def recorded_samples(self, kept_audio: Iterable[str] = ()) -> tuple[Sample, ...]:
        """Samples as the schema wants them, with what was found in the audio of the first repetition."""
        kept = set(kept_audio)
        samples = []
        for record in self.samples:
            first = record["phase"] == "measured" and record["repetition"] == 0
            found = self.clip_flags.get(record["item"], []) if first else []
            name = audio_name(record["item"])
            flags = tuple(dict.fromkeys([*record["flags"], *found]))
            audio = name if first and name in kept else None
            samples.append(Sample(**{**record, "flags": flags, "audio": audio}))
        return tuple(samples)


def audio_name(item: str) -> str:
    """File name of a kept clip; text ids are plain words, anything else in them becomes a dash."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in item) + ".flac"


def finish_measures(findings: Findings, status: RunStatus) -> None:
    """The numbers that are drawn from several reports, and nulls for those that nobody made."""
    peaks = [findings.values.get(name) for name in ("rss_peak_bytes", "rss_peak_own_bytes")]
    known = [peak for peak in peaks if peak is not None]
    if known:
        findings.values["rss_peak_bytes"] = max(known)
    if (vram := findings.values.get("vram_nvml_bytes")) is not None:
        findings.values["vram_peak_bytes"] = vram
    else:
        findings.reasons.setdefault("vram_peak_bytes", findings.reasons.get("vram_nvml_bytes", ""))
    if not findings.reasons.get("vram_peak_bytes"):
        findings.reasons.pop("vram_peak_bytes", None)
    builds = [record.build_s for record in findings.artifacts if record.build_s is not None]
    if builds:
        findings.values["build_s"] = sum(builds)
    elif status == "ok":
        findings.set_missing(["build_s"], "nothing was built: the recipe loads the voice's own files")
    findings.set_missing(_EXPECTED, f"the run ended as {status!r} during {findings.stage!r}")


def verdict(findings: Findings, *, trained: bool) -> tuple[RunStatus, Failure | None]:
    """The status of a run whose measured process ended, and its cause when that is not `ok`."""
    if findings.failure is not None:
        failure = findings.failure
        return failure["status"], Failure(
            kind=failure["type"],
            message=failure["message"],
            stage=findings.stage,
            remedy=failure["remedy"],
            traceback=failure["traceback"],
        )
    never = [
        s
        for s in findings.samples
        if s["phase"] == "measured" and (s["ended"] is False or _NEVER_ENDED in s["flags"])
    ]
    measured = [s for s in findings.samples if s["phase"] == "measured"]
    # random weights never end by themselves: that is no fault of a recipe
    if trained and len(never) * 2 > len(measured):
        return "invalid", Failure(
            kind=_NEVER_ENDED,
            message=f"{len(never)} of {len(measured)} utterances did not end before the maximum of steps",
            stage="speak",
            remedy="The recipe damages the voice, or max_steps is too small for these texts.",
        )
    return "ok", None


def ending(ended: Ended, task: str, limits: Limits, log: str) -> Event | None:
    """What an ending that the child did not report itself means; None for a good one."""
    if ended.stopped_by == "time":
        return _event(
            "timeout",
            "TimeLimit",
            f"{task} was stopped after {limits.seconds:g} s"
            + (" beside its builds" if task == "prepare" else ""),
            "Raise limits.seconds, or ask for fewer texts or repeats.",
        )
    if ended.stopped_by == "memory":
        return _event(
            "oom",
            "MemoryLimit",
            f"{task} was stopped above {limits.memory_gb:g} GB of resident memory",
            "Raise limits.memory_gb, or choose a smaller precision.",
        )
    if ended.returncode == -signal.SIGKILL and ended.oom_kills == 0:
        return _event(
            "failed",
            "SIGKILL",
            f"{task} was killed by SIGKILL, and not by the kernel for want of memory",
            "Somebody or a supervisor ended it: run it again.",
            log,
        )
    if ended.returncode == -signal.SIGKILL:
        return _event(
            "oom",
            "SIGKILL",
            f"{task} was killed by SIGKILL, which is how Linux ends a process when memory runs out",
            "Free memory, or choose a smaller precision; `dmesg` tells whether it was the kernel.",
            log,
        )
    if ended.returncode < 0:
        name = signal.Signals(-ended.returncode).name
        return _event(
            "failed", name, f"{task} was ended by {name}", "Its last words are in the traceback.", log
        )
    if ended.returncode:
        return _event("failed", "ExitCode", f"{task} ended with exit code {ended.returncode}", "", log)
    return None


def missing_scores(reason: str) -> list[ClipScore]:
    """A null for each metric of the panel, all for one reason."""
    from labkit.quality.base import DEFAULT_PANEL, all_metrics

    return [
        ClipScore(
            item=EVERY_CLIP, repetition=0, metric=metric.name, value=None, unit=metric.unit, reason=reason
        )
        for metric in all_metrics(DEFAULT_PANEL).values()
    ]


def _event(status: str, kind: str, message: str, remedy: str, log: str = "") -> Event:
    return {
        "kind": "failure",
        "status": status,
        "type": kind,
        "message": message,
        "remedy": remedy,
        "traceback": log,
        "user": False,
    }
