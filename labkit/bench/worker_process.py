"""The parent's end of a `labkit.bench.worker`: ask, wait, end it when it is silent for too long.

It knows a process and its protocol of JSON lines, not what is asked for.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any, Self

from labkit.errors import LabError
from labkit.run.process import child_environment, kill_tree

_TIMEOUT_S = 600.0


class WorkerProcess:
    """A `labkit.bench.worker` pinned to some cores, with a thread for each."""

    def __init__(self, cores: Sequence[int], timeout_s: float = _TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "labkit.bench.worker", ",".join(map(str, cores))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=child_environment(len(cores)),
            encoding="utf-8",
        )

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Ask and wait; `LabError` when the worker reports an exception, has died, or was ended for its silence."""
        assert self._process.stdin is not None and self._process.stdout is not None
        watchdog = threading.Timer(self._timeout_s, kill_tree, (self._process.pid,))
        watchdog.start()
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late = not watchdog.is_alive()
            watchdog.cancel()
        if not line:
            self._log.seek(0)
            words = self._log.read().decode(errors="replace")[-1000:]
            how = (
                f"was ended after {self._timeout_s:g} s"
                if late
                else f"ended with code {self._process.wait()}"
            )
            raise LabError(f"the bench worker {how} during {command!r}: {words}")
        reply: dict[str, Any] = json.loads(line)
        if not reply.pop("ok"):
            raise LabError(f"{command}: {reply['type']}: {reply['message']}")
        return reply

    def close(self) -> None:
        """End the worker and whatever it started."""
        if self._process.poll() is None:
            kill_tree(self._process.pid)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # of a request that a dead worker never read
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
