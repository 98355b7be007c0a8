from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from labkit.measure.memory import TreeMemory, own_peak_rss_bytes

MIB = 2**20
# a process whose child holds 60 MiB, says so, and waits until its input closes
FAMILY = """
import subprocess, sys
child = "import sys; held = b'x' * (60 * 2**20); print('up', flush=True); sys.stdin.read()"
process = subprocess.Popen([sys.executable, "-c", child], stdin=subprocess.PIPE)
sys.stdin.read()
process.stdin.close()
process.wait()
"""


@pytest.fixture
def family():
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    yield process
    process.communicate()


def test_a_tree_counts_its_children_and_keeps_its_peak(family) -> None:
    memory = TreeMemory(family.pid)
    now = memory.read()
    assert now is not None and now > 60 * MIB
    assert memory.peak_bytes == now
    family.communicate()
    assert memory.read() is None
    assert memory.peak_bytes == now


def test_own_peak_covers_memory_already_given_back() -> None:
    before = own_peak_rss_bytes()
    assert before is not None
    held = np.ones(before + 40 * MIB, dtype=np.uint8)
    size = held.nbytes
    del held
    after = own_peak_rss_bytes()
    assert after is not None and after >= size


def test_own_peak_and_tree_agree_on_this_process() -> None:
    peak, now = own_peak_rss_bytes(), TreeMemory(os.getpid()).read()
    assert peak is not None and now is not None
    assert now <= peak * 1.05 + 10 * MIB
