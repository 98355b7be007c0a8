"""Peak resident memory of a process tree, seen from outside, and of this process, told by the kernel.

The two disagree on purpose: the sampled peak covers children but may miss a spike shorter than its interval;
the kernel's mark misses nothing, but covers one process only. A run reports the larger.
Neither sees device memory, swapped pages or the page cache; shared pages count once in every process.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

_REFRESH_EVERY = (
    25  # looking for new descendants reads the whole process table (2 ms); their memory is cheap to ask
)


class TreeMemory:
    """Adds up the resident memory of a process and its descendants, and remembers the peak."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._members: list[psutil.Process] = [self._root]
        self._reads = 0
        self.peak_bytes: int | None = None

    def read(self) -> int | None:
        """Resident bytes now, or None when the process has gone."""
        if self._reads % _REFRESH_EVERY == 0:
            self._members = [self._root, *_descendants(self._root)]
        self._reads += 1
        total = [rss for member in self._members if (rss := _rss(member)) is not None]
        if not total:
            return None
        now = sum(total)
        self.peak_bytes = max(self.peak_bytes or 0, now)
        return now


def own_peak_rss_bytes() -> int | None:
    """The kernel's high-water mark of this process, or None where it keeps none.

    Linux: `VmHWM` of /proc (`ru_maxrss` there starts from the parent's size at fork). macOS: `ru_maxrss` in bytes.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def oom_kills() -> int | None:
    """How many processes this machine's kernel has killed for want of memory since it started; None where it hides it.

    `oom_kill` of /proc/vmstat (Linux 4.13), which counts those of every control group.
    """
    try:
        lines = Path("/proc/vmstat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    counts = [int(line.split()[1]) for line in lines if line.startswith("oom_kill ")]
    return counts[0] if counts else None


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int | None:
    try:
        # a zombie still answers, with zero: it holds nothing any more
        return int(process.memory_info().rss) or None
    except psutil.Error:
        return None
