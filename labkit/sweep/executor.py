"""Where a notebook of a sweep runs: the interface, and the executor for this machine.

It knows processes and time; nothing of what a notebook does. An executor for many machines runs the same child
command there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from labkit.run.process import child_environment, kill_tree

TICK_S = 0.1  # coarse on purpose: a run is being measured beside this loop
_LOG_TAIL = 4000  # characters of a dead child's output that are kept


@dataclass(frozen=True)
class NotebookJob:
    """One notebook to execute. `seconds` is the outer limit; the run inside has limits of its own."""

    notebook: Path
    output: Path
    parameters: Mapping[str, Any]
    seconds: float


@dataclass(frozen=True)
class JobEnd:
    """How a job ended. `failure` is None only when the notebook ran to its end."""

    wall_s: float
    failure: JobFailure | None = None


@dataclass(frozen=True)
class JobFailure:
    """Class of the exception (or `ExitCode`, `Watchdog`), what it says, and the traceback or last words."""

    kind: str
    message: str
    traceback: str = ""


def unfinished(output: Path, pid: int) -> Path:
    """Where the process `pid` writes a notebook until it is whole."""
    return output.with_name(f".{output.stem}.{pid}.ipynb")


class Executor(Protocol):
    """Runs one job to its end; leaves no process behind, also when it is interrupted."""

    def run(self, job: NotebookJob) -> JobEnd: ...


class LocalExecutor:
    """A fresh child process of this machine for each notebook."""

    def run(self, job: NotebookJob) -> JobEnd:
        """Run the job; its whole process tree is killed when it takes longer than `job.seconds`."""
        job.output.parent.mkdir(parents=True, exist_ok=True)
        log = job.output.with_suffix(".log")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="labkit-job-", ignore_cleanup_errors=True) as folder:
            file = Path(folder) / "job.json"
            file.write_text(json.dumps(asdict(job), default=str, allow_nan=False), encoding="utf-8")
            with log.open("wb") as output:
                child = subprocess.Popen(
                    [sys.executable, "-m", "labkit.sweep.worker", str(file)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=child_environment(threads=1),
                    start_new_session=True,  # Ctrl-C reaches the driver alone, which ends the whole tree
                )
            try:
                in_time = _wait(child, started + job.seconds)
            finally:
                if child.poll() is None:
                    kill_tree(child.pid)
                    child.wait()
                with contextlib.suppress(
                    FileNotFoundError
                ):  # a notebook that was cut off is worth reading too
                    os.replace(unfinished(job.output, child.pid), job.output)
            wall_s = time.monotonic() - started
            return JobEnd(
                wall_s, _failure(job, child.returncode, in_time, file.with_name("failure.json"), log)
            )


def _wait(child: subprocess.Popen[bytes], until: float) -> bool:
    while time.monotonic() < until:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=TICK_S)
            return True
    return False


def _failure(job: NotebookJob, code: int, in_time: bool, report: Path, log: Path) -> JobFailure | None:
    if not in_time:
        return JobFailure("Watchdog", f"the notebook was stopped from outside after {job.seconds:.0f} s")
    if code == 0:
        return None
    if report.exists():
        return JobFailure(**json.loads(report.read_text(encoding="utf-8")))
    last_words = log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
    if code < 0:
        name = signal.Signals(-code).name
        return JobFailure(name, f"the notebook's process was ended by {name}", last_words)
    return JobFailure("ExitCode", f"the notebook's process ended with exit code {code}", last_words)
