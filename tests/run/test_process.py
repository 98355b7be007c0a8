from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from labkit.run.process import child_environment, watch


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a module that `watch` can start by name; it gets one path as its argument."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def write(body: str) -> str:
        (tmp_path / "watched_child.py").write_text("import sys, os, time\n" + textwrap.dedent(body))
        return "watched_child"

    return write


def run(module: str, tmp_path: Path, **limits):
    return watch(module, tmp_path, log=tmp_path / "log", threads=1, **{"seconds": 20.0, **limits})


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_a_good_child_ends_with_its_code_and_its_words(script, tmp_path: Path) -> None:
    ended = run(script("print('said', sys.argv[1]); sys.exit(3)"), tmp_path)
    assert (ended.returncode, ended.stopped_by) == (3, None)
    assert (tmp_path / "log").read_text() == f"said {tmp_path}\n"


def test_time_is_up_for_the_whole_tree(script, tmp_path: Path) -> None:
    module = script(
        """
        import subprocess
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        open(sys.argv[1] + "/pid", "w").write(str(grandchild.pid))
        time.sleep(60)
        """
    )
    ended = run(module, tmp_path, seconds=1.0)
    assert ended.stopped_by == "time" and ended.returncode == -signal.SIGKILL and ended.wall_s < 10
    assert gone(int((tmp_path / "pid").read_text()))


def test_time_that_is_excused_does_not_count(script, tmp_path: Path) -> None:
    module, began = script("time.sleep(60)"), time.monotonic()
    ended = run(module, tmp_path, seconds=0.5, excused_s=lambda: min(time.monotonic() - began, 1.0))
    assert ended.stopped_by == "time" and ended.wall_s > 1.4


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it on Linux only")
def test_a_child_killed_by_hand_is_told_from_one_killed_for_want_of_memory(script, tmp_path: Path) -> None:
    ended = run(script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), tmp_path)
    assert (ended.returncode, ended.stopped_by) == (-signal.SIGKILL, None)
    assert ended.oom_kills in (0, None)


def test_memory_above_the_limit_stops_the_child(script, tmp_path: Path) -> None:
    ended = run(script("held = b'x' * (200 * 2**20); time.sleep(60)"), tmp_path, memory_bytes=120 * 2**20)
    assert ended.stopped_by == "memory" and ended.wall_s < 15


def test_the_peak_is_seen_while_it_lasts(script, tmp_path: Path) -> None:
    peaks: list[int] = []
    run(
        script("held = b'x' * (100 * 2**20); time.sleep(0.3)"), tmp_path,
        on_tick=lambda memory: peaks.append(memory.peak_bytes or 0),
    )  # fmt: skip
    assert peaks[-1] > 100 * 2**20 and peaks == sorted(peaks)


def test_an_interrupted_parent_leaves_no_child(script, tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupt(memory) -> None:
        pids.append(memory._root.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(script("time.sleep(60)"), tmp_path, on_tick=interrupt)
    assert gone(pids[0])


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    child = (
        "import os, sys, time; from labkit.run.process import die_with_parent; die_with_parent(os.getppid());"
    )
    child += "print(os.getpid(), flush=True); time.sleep(60)"
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"],
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert gone(pid)


def test_every_thread_pool_is_held() -> None:
    environment = child_environment(2)
    assert environment["OMP_NUM_THREADS"] == environment["OPENBLAS_NUM_THREADS"] == "2"
    assert environment["PATH"] == os.environ["PATH"]
