"""What the parent of a run and its children hand each other: a folder.

`job.json` goes down. Up come `<task>.events.jsonl`, appended as things happen, so that a child which is killed
leaves everything it had already measured, and arrays as `.npz`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from labkit import errors
from labkit.errors import InvalidAudioError, UnavailableError, UserError
from labkit.run.process import die_with_parent
from labkit.spec import RunSpec, parse_run

Event = dict[str, Any]
BUILD = "build"
"""The stage of a child that makes artifacts."""
# words in the messages of torch, ONNX Runtime and the C++ library when memory is refused
_OUT_OF_MEMORY = (
    "out of memory",
    "not enough memory",
    "failed to allocate memory",
    "bad_alloc",
    "bad allocation",
)


@dataclass(frozen=True)
class JobText:
    """One text to speak."""

    id: str
    text: str


@dataclass(frozen=True)
class Job:
    """One run as its children see it. `folder` is where they leave their results."""

    folder: Path
    spec: RunSpec
    texts: tuple[JobText, ...]
    language: str
    judged: bool
    parent: int = field(default_factory=os.getpid)

    @property
    def needs_reference(self) -> bool:
        """Replay says the reference's codes; judging compares with its audio."""
        return self.judged or self.spec.scenario == "replay"

    def write(self) -> None:
        body = {
            "spec": self.spec.model_dump(mode="json", exclude_unset=True),
            "texts": [asdict(text) for text in self.texts],
            "language": self.language,
            "judged": self.judged,
            "parent": self.parent,
            "spawned_at": time.monotonic(),
        }
        (self.folder / "job.json").write_text(json.dumps(body, ensure_ascii=False), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> tuple[Job, float]:
        """The job, and when (on `time.monotonic`) its process was asked for."""
        body = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        spec = parse_run(body["spec"], place=str(folder / "job.json"))
        texts = tuple(JobText(**text) for text in body["texts"])
        return Job(folder, spec, texts, body["language"], body["judged"], body["parent"]), body["spawned_at"]


class Reporter:
    """A child's way up: one JSON line for each event, on disk at once."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("a", encoding="utf-8", buffering=1)

    def stage(self, name: str, detail: str = "") -> None:
        """What the child is doing from now on."""
        self.event("stage", name=name, detail=detail)

    def values(self, values: dict[str, float | int | None], reasons: dict[str, str] | None = None) -> None:
        """Numbers of the whole run; a null needs its reason."""
        self.event("values", values=values, reasons=reasons or {})

    def note(self, text: str) -> None:
        self.event("note", text=text)

    def event(self, kind: str, **fields: Any) -> None:
        self._file.write(json.dumps({"kind": kind, **fields}, ensure_ascii=False, allow_nan=False) + "\n")


class EventLog:
    """The parent's end: reads what has been appended since it last looked."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._offset = 0

    def new(self) -> Iterator[Event]:
        """Complete new lines; one that is still being written waits for the next call."""
        if not self._file.exists():
            return
        with self._file.open("rb") as source:
            source.seek(self._offset)
            for line in source:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                yield json.loads(line)


class BuildClock:
    """How long a child has been building artifacts, by its events: done once for many runs, and counted by no limit."""

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._since: float | None = None

    def take(self, event: Event) -> None:
        """A stage begins; it ends the one before."""
        if event["kind"] != "stage":
            return
        self._spent_s, self._since = self.seconds(), time.monotonic() if event["name"] == BUILD else None

    def seconds(self) -> float:
        return self._spent_s + (0.0 if self._since is None else time.monotonic() - self._since)


def child_main(task: str, work: Callable[[Job, Reporter, float], None]) -> None:
    """Body of `python -m labkit.run.<task> FOLDER`: do the work and report how it ended; exit code 0 or 1."""
    folder = Path(sys.argv[1])
    job, spawned_at = Job.read(folder)
    die_with_parent(job.parent)
    reporter = Reporter(events_file(folder, task))
    try:
        work(job, reporter, spawned_at)
    except Exception as error:  # the border of a process: everything is reported, nothing is swallowed
        reporter.event("failure", **describe(error))
        raise SystemExit(1) from None
    reporter.event("done")


def events_file(folder: Path, task: str) -> Path:
    return folder / f"{task}.events.jsonl"


def log_file(folder: Path, task: str) -> Path:
    return folder / f"{task}.log"


def describe(error: BaseException) -> Event:
    """An exception as the fields of a `Failure`, the run status it means, and whether the user can mend it."""
    # other classes have a `reason` too, which is a part of what they say
    message, remedy = (
        (error.reason, error.remedy) if isinstance(error, UnavailableError) else (str(error), "")
    )
    return {
        "status": status_of(error),
        "type": type(error).__name__,
        "message": message or type(error).__name__,
        "remedy": remedy,
        "traceback": "".join(traceback.format_exception(error)),
        "user": isinstance(error, UserError),
    }


def status_of(error: BaseException) -> str:
    """Which run status an exception means."""
    if isinstance(error, UnavailableError):
        return "unavailable"
    if isinstance(error, InvalidAudioError):
        return "invalid"
    words = str(error).lower()
    if isinstance(error, MemoryError) or any(sign in words for sign in _OUT_OF_MEMORY):
        return "oom"
    return "failed"


def user_error(failure: Event) -> UserError:
    """The user's error that a child reported, of its own class, to be raised by the parent."""
    kind = getattr(errors, failure["type"], UserError)
    known = isinstance(kind, type) and issubclass(kind, UserError)
    return kind(failure["message"]) if known else UserError(failure["message"])
