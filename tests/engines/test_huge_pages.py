from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from labkit.engines import huge_pages

LINUX = Path("/proc/self/smaps").exists()


def mapping(size: int, touched: int) -> tuple[mmap.mmap, np.ndarray]:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    array[:touched:4096] = 7
    memory.madvise(mmap.MADV_NORMAL)
    return memory, array


def holds(regions: list[huge_pages.Region], array: np.ndarray) -> bool:
    return any(start <= array.ctypes.data < end for start, end in regions)


def huge_bytes(array: np.ndarray) -> int:
    """Of the mapping that holds the array, as the kernel tells it."""
    blocks = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    for block in filter(None, blocks):
        start, end = (int(number, 16) for number in block.split()[0].split("-"))
        if start <= array.ctypes.data < end:
            return int(re.search(r"AnonHugePages:\s+(\d+)", block)[1]) * 1024
    raise AssertionError("the array is in no mapping")


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_only_filled_mappings_are_found() -> None:
    sparse = mapping(64 << 20, 1 << 20)
    assert not holds(huge_pages.filled_regions(), sparse[1])
    sparse[1][::4096] = 7
    assert holds(huge_pages.filled_regions(), sparse[1])


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_collapsing_keeps_the_bytes_and_spares_what_was_there_before() -> None:
    _, array = mapping(32 << 20, 32 << 20)
    array[:] = np.random.default_rng(0).integers(0, 255, len(array), dtype=np.uint8)
    before = array.copy()
    huge_pages.collapse(huge_pages.filled_regions())
    assert huge_bytes(array) == 0
    done = huge_pages.collapse()
    np.testing.assert_array_equal(array, before)
    assert done % (2 << 20) == 0
    assert huge_bytes(array) <= done


def test_without_proc_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huge_pages, "_MAPS", tmp_path / "nothing")
    assert huge_pages.filled_regions() == []
    assert huge_pages.collapse() == 0
