"""One child process: started fresh, watched for time and memory, ended with its whole tree.

It knows processes and limits; nothing of runs. The watched numbers come from outside the child, so that watching
costs the child nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from labkit.measure.memory import TreeMemory, oom_kills

TICK_S = 0.02
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

# every thread pool that a backend may bring reads one of these once, when its library is loaded
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


@dataclass(frozen=True)
class Ended:
    """How a child ended: its own exit code, or which limit stopped it.

    `oom_kills`: processes that the kernel killed for want of memory while it ran, None where that is not told.
    """

    returncode: int
    stopped_by: Literal["time", "memory"] | None
    wall_s: float
    oom_kills: int | None = None


def child_environment(threads: int) -> dict[str, str]:
    """This process's environment with every thread pool held to `threads`."""
    return {
        **os.environ,
        **dict.fromkeys(_THREAD_VARIABLES, str(threads)),
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }


def watch(
    module: str,
    argument: Path,
    *,
    log: Path,
    threads: int,
    seconds: float,
    memory_bytes: int | None = None,
    on_tick: Callable[[TreeMemory], None] = lambda memory: None,
    excused_s: Callable[[], float] = lambda: 0.0,
) -> Ended:
    """Run `python -m module argument` to its end and return how it ended; its output goes to `log`.

    The child's whole tree is killed when it takes longer than `seconds` or more than `memory_bytes` of resident
    memory, and when this function is left by any exception (Ctrl-C among them). `on_tick` is called every 20 ms,
    then `excused_s`: how much of the child's time so far does not count.
    """
    with log.open("wb") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", module, str(argument)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_environment(threads),
            start_new_session=True,  # a Ctrl-C reaches the parent alone, which ends the child's whole tree
        )
    started, kills = time.monotonic(), oom_kills()
    try:
        memory = TreeMemory(child.pid)
        stopped_by: Literal["time", "memory"] | None = None
        while child.poll() is None:
            resident = memory.read()
            on_tick(memory)
            if time.monotonic() - started - excused_s() > seconds:
                stopped_by = "time"
            elif memory_bytes is not None and (resident or 0) > memory_bytes:
                stopped_by = "memory"
            if stopped_by:
                break
            _wait(child, TICK_S)
        return Ended(_end(child), stopped_by, time.monotonic() - started, _more(kills, oom_kills()))
    except psutil.NoSuchProcess:  # it ended before it could be watched
        return Ended(child.wait(), None, time.monotonic() - started, _more(kills, oom_kills()))
    except BaseException:
        _end(child)
        raise


def die_with_parent(parent: int) -> None:
    """Called by a child: the kernel kills it when the parent's thread that started it dies.

    Linux only; elsewhere a killed parent leaves its child to end by itself.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the call
            os.kill(os.getpid(), signal.SIGKILL)


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants."""
    try:
        root = psutil.Process(pid)
        family = [*root.children(recursive=True), root]
    except psutil.NoSuchProcess:
        return
    for member in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=seconds)


def _end(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        kill_tree(child.pid)
    return child.wait()
