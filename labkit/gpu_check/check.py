"""The parent: voices, one child for each case, a time budget, and one line and one document for each result.

It knows processes, time and files; it loads no weights and touches no device, so that the idle memory of the device
is idle. What is measured is written at once: a check that is cut off keeps what it has.
"""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labkit.environment import describe_environment, machine_class, usable_cores
from labkit.gpu_check import vram
from labkit.gpu_check.cases import CASES, Case, Work, run_spec
from labkit.gpu_check.documents import Outcome, failure, run_document, write_document
from labkit.gpu_check.jobs import MARK, Job
from labkit.gpu_check.parity import too_far
from labkit.gpu_check.words import case_line, closing_lines
from labkit.model.checksums import HashMemory, combined_hash
from labkit.model.config import FULL, VoiceConfig
from labkit.model.layout import WEIGHT_FILES, VoiceCard, asset_folder, write_descriptions

TICK_S = 0.02
_NO_FAULT = ("ok", "unavailable", "timeout")
Event = dict[str, Any]
Say = Callable[[str], None]


@dataclass
class Check:
    """One check of one machine. `run` does it; `outcomes` and `unreached` tell what came of it."""

    store: Path
    scratch: Path
    seconds: float
    device: str = "cuda"
    threads: int = field(default_factory=usable_cores)
    cases: tuple[Case, ...] = CASES
    work: Work = field(default_factory=Work)
    voices: dict[str, Path] = field(default_factory=dict)
    say: Say = print
    worker: str = "labkit.gpu_check.worker"
    outcomes: list[tuple[Case, int, Outcome]] = field(default_factory=list)
    unreached: list[Case] = field(default_factory=list)

    def run(self) -> int:
        """Exit code: 0 when nothing that was measured is wrong, else 1. Being cut off by the budget is no fault."""
        self._started = time.monotonic()
        self.store.mkdir(parents=True, exist_ok=True)
        self.scratch.mkdir(parents=True, exist_ok=True)
        self._environment = describe_environment()
        self._references: dict[str, Path] = {}
        self._hashes: dict[str, str] = {}
        self.unreached = list(self.cases)
        try:
            for case in self.cases:
                if self.left() < case.seconds:
                    continue
                self._ready(case.voice)
                if self.left() < case.seconds:
                    continue
                self.unreached.remove(case)
                self._case(case)
        finally:  # also when it is interrupted: what is there is worth its words
            for line in closing_lines(self.outcomes, self.unreached, time.monotonic() - self._started):
                self.say(line)
        return 0 if all(outcome.status in _NO_FAULT for _, _, outcome in self.outcomes) else 1

    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.seconds - (time.monotonic() - self._started)

    def _ready(self, voice: str) -> None:
        """The voice's folder, its hash and the CPU's answers, each made once."""
        if voice in self._references:
            return
        if voice not in self.voices:
            self.voices[voice] = self._make_random() if voice == "random" else _nano()
        folder = asset_folder(self.voices[voice])
        self.voices[voice] = folder
        config = VoiceConfig.from_folder(folder)
        memory = HashMemory(self.scratch / "hashes.json")
        # the tokenizer is left out: this check reads tokens, and a machine for it may not have one
        self._hashes[voice] = combined_hash(folder, WEIGHT_FILES, memory, extra=repr(config))
        self._references[voice] = self.scratch / f"answers-{voice}"
        self.say(f"{voice}: asking the CPU")
        for event in self._child(self._job(None, voice), None, limit=self.left()):
            if event["kind"] == "failure":
                self.say(f"{voice}: the CPU gives no answers to compare with: {event['message']}")

    def _make_random(self) -> Path:
        """Random weights at the published sizes, without the tokenizer that nobody asks here."""
        from labkit.model.random_weights import write_random_weights

        self.say("random: making weights of the published sizes (1.1 GB)")
        asset = self.scratch / "random" / "asset"
        if not (asset / WEIGHT_FILES[-1]).exists():
            write_random_weights(asset, FULL, 0)
            write_descriptions(asset, FULL, VoiceCard("random:0", "none: random numbers", for_quality=False))
        return asset

    def _job(self, case: Case | None, voice: str) -> Job:
        return Job(
            case=case, voice=self.voices[voice], device=self.device, threads=self.threads, work=self.work,
            reference=self._references[voice], spawned_at=time.monotonic(),
        )  # fmt: skip

    def _case(self, case: Case) -> None:
        """Run one case; write each batch size as it is done, and the others with the reason why they are not."""
        watch = vram.DeviceWatch(_index(self.device))
        waiting = list(case.batches)
        cause: Event = {"status": "failed", "type": "Silence", "message": "the process ended without a word"}
        begun, seen = datetime.now(UTC), watch.values()
        for event in self._child(self._job(case, case.voice), watch, limit=self.left()):
            match event["kind"]:
                case "hello":
                    self._complete_environment(event)
                case "begin":
                    begun = datetime.now(UTC)
                    watch.restart()
                case "measured":
                    seen = watch.values()
                case "result":
                    waiting.remove(event["batch"])
                    self._keep(case, event["batch"], begun, _outcome(case, event, seen))
                case "failure":
                    cause = event
        watch.close()
        for batch in waiting:
            found = failure(
                cause["type"], cause["message"], "speak", cause.get("remedy", ""), cause.get("traceback", "")
            )
            self._keep(case, batch, begun, Outcome(cause["status"], found, {"batch": batch}))

    def _keep(self, case: Case, batch: int, begun: datetime, outcome: Outcome) -> None:
        self.outcomes.append((case, batch, outcome))
        self.say(case_line(case, batch, outcome))
        document = run_document(
            outcome,
            run_spec(case, self.work, batch, self.device, self.threads),
            started=begun,
            environment=self._environment,
            machine_class=machine_class(self._environment),
            weights_hash=self._hashes[case.voice],
            corpus_hash=self.work.corpus_hash(batch),
        )
        write_document(self.store, document)

    def _complete_environment(self, event: Event) -> None:
        """What torch says of the card, where NVML was silent."""
        self._environment["torch_cuda"] = event["cuda"]
        if event["gpu"] and not self._environment["gpus"]:
            self._environment["gpus"] = [event["gpu"]]
            self._environment["gpus_reason"] = "told by torch"

    def _child(self, job: Job, watch: vram.DeviceWatch | None, limit: float) -> Iterator[Event]:
        """Events of one process as they come; it is ended when `limit` seconds are over, or when we are."""
        path = self.scratch / "job.json"
        job.write(path)
        log = self.scratch / "stderr.txt"
        with log.open("wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", self.worker, str(path)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, env=_environment(),
            )  # fmt: skip
        if watch is not None:
            watch.pid = child.pid
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_read, args=(child, lines), daemon=True).start()
        deadline, failed = time.monotonic() + limit, False
        try:
            while True:
                if watch is not None:
                    watch.sample()
                if time.monotonic() > deadline:
                    message = f"stopped after {limit:.0f} s, when the time of the whole check was over"
                    yield {"kind": "failure", "status": "timeout", "type": "TimeLimit", "message": message}
                    return
                try:
                    line = lines.get(timeout=TICK_S)
                except queue.Empty:
                    continue
                if line is None:
                    break
                event: Event = json.loads(line)
                failed |= event["kind"] == "failure"
                yield event
            if child.wait() and not failed:
                said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
                message = f"the process ended with exit code {child.returncode}"
                yield {
                    "kind": "failure", "status": "failed", "type": "ExitCode", "message": message, "traceback": said,
                }  # fmt: skip
        finally:
            child.kill()
            child.wait()


def _outcome(case: Case, event: Event, seen: Any) -> Outcome:
    """A result as it is recorded: the driver's memory added, numbers that are none taken out, parity judged."""
    outcome = Outcome(
        values=event["values"],
        reasons=event["reasons"],
        samples=event["samples"],
        placement=event["placement"],
    )
    outcome.values |= seen[0]
    outcome.reasons |= seen[1]
    if found := too_far(outcome.values, case.precision):
        outcome.status = "failed"
        outcome.failure = failure(
            "ParityError", f"too far from the CPU's fp32: {'; '.join(found)}", "parity",
            "A wider precision, if this one is too narrow; else the engine is wrong on this device.",
        )  # fmt: skip
    for name, value in outcome.values.items():
        if value is not None and not math.isfinite(value):
            outcome.values[name] = None
            outcome.reasons[name] = f"it came out as {value}"
    return outcome


def _read(child: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith(MARK):
            lines.put(line.removeprefix(MARK))
    lines.put(None)


def _environment() -> dict[str, str]:
    """The child imports this labkit, wherever it is started from."""
    root = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": f"{root}{os.pathsep}{known}" if known else root,
        "PYTHONUNBUFFERED": "1",
    }


def _nano() -> Path:
    return Path(__file__).resolve().parents[1] / "assets" / "nano"


def _index(device: str) -> int:
    return int(device.partition(":")[2] or 0)
