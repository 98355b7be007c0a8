"""One upstream process and the conversation with it.

It knows the protocol of `worker/__main__.py` and the life of a child process: start, ask, time-out, death,
end. It knows nothing of what the commands mean.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.upstream.environment import require_python

_HERE = Path(__file__).resolve().parent


class UpstreamError(LabError):
    """Upstream failed at what it was asked, died, or did not answer in time."""


class Reply(NamedTuple):
    """What a command returned: plain fields and named arrays."""

    fields: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class UpstreamProcess:
    """A context manager around one worker: `with UpstreamProcess() as peer: peer.call("hello")`."""

    def __init__(self, python: Path | None = None, *, threads: int = 1) -> None:
        self._python = python or require_python()
        self._threads = threads
        self._requests = itertools.count()
        self._folder = Path(tempfile.mkdtemp(prefix="labkit-upstream-"))
        self._log = self._folder / "stderr.log"
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process = self._start()

    @property
    def pid(self) -> int:
        """Process id, for a memory monitor."""
        return self._process.pid

    def call(
        self,
        command: str,
        arrays: Mapping[str, NDArray[Any]] | None = None,
        *,
        timeout_s: float = 600.0,
        **fields: Any,
    ) -> Reply:
        """Ask for one command and wait for its reply.

        `UpstreamError` when the worker reports an exception, has died, or is silent for `timeout_s`
        seconds; after the last two it is ended and cannot be asked again.
        """
        number = next(self._requests)
        request = {
            "command": command,
            "arrays": self._write(number, arrays) if arrays else None,
            "reply_arrays": str(self._folder / f"{number}-reply.npz"),
            **fields,
        }
        reply = json.loads(self._exchange(json.dumps(request), command, timeout_s))
        if arrays:
            shutil.rmtree(request["arrays"])
        if not reply.pop("ok"):
            raise UpstreamError(
                f"upstream's {command!r} failed with {reply['type']}: {reply['message']}\n{reply['traceback']}"
            )
        return Reply(reply, self._read(reply.pop("arrays")))

    def close(self) -> None:
        """End the worker and delete what was exchanged."""
        if self._process.stdin is not None:
            # a worker that died with a request unread breaks the pipe at the last flush
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()  # it may be in the middle of minutes of work
        self.close()

    def _start(self) -> subprocess.Popen[str]:
        environment = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")
        }
        environment |= {
            "OMP_NUM_THREADS": str(self._threads),
            "HF_HUB_OFFLINE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with self._log.open("w") as log:
            process = subprocess.Popen(
                [str(self._python), "-u", "-m", "worker"],
                cwd=_HERE,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
            )
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        return process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _exchange(self, request: str, command: str, timeout_s: float) -> str:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            self._process.kill()
            raise UpstreamError(
                f"upstream did not answer {command!r} within {timeout_s:g} s and was ended; allow it more time."
            ) from None
        except (BrokenPipeError, ValueError):
            line = None
        if line is None:
            code = self._process.wait()
            raise UpstreamError(
                f"upstream's process ended with code {code} during {command!r}; its last words:\n{self._last_words()}"
            )
        return line

    def _last_words(self, lines: int = 15) -> str:
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def _write(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> str:
        folder = self._folder / f"{number}-request"
        folder.mkdir()
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
        return str(folder)

    @staticmethod
    def _read(file: str | None) -> dict[str, NDArray[Any]]:
        if file is None:
            return {}
        with np.load(file) as archive:
            arrays = {name: archive[name] for name in archive.files}
        Path(file).unlink()
        return arrays
