"""Putting a loaded network into huge pages, for engines whose runtime does not ask for them itself.

A decode step streams through all weights in short pieces; in 4 KB pages much of that time goes into finding the pages.
Linux 6.1 can gather memory that is already filled into pages of 2 MB (`MADV_COLLAPSE`); elsewhere nothing happens and
the answer is 0 bytes. It knows this process's mappings and nothing of what they hold.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

_MAPS = Path("/proc/self/smaps")
_MADV_COLLAPSE = 25  # linux/mman.h since 6.1
_PAGE = 2 << 20
_LEAST = 2 * _PAGE
_FILLED = 0.9  # of a mapping: what was never touched would be made real by collapsing it
_HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+)\s*(.*)")


class Region(NamedTuple):
    """A mapping of this process, by its first address and the one after its last."""

    start: int
    end: int


def filled_regions() -> list[Region]:
    """Writable mappings of no file that are large and nearly wholly in memory; empty where there is no /proc."""
    try:
        text = _MAPS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    regions: list[Region] = []
    region, anonymous = Region(0, 0), False
    for line in text.splitlines():
        if header := _HEADER.fullmatch(line):
            start, end, access, inode, name = header.groups()
            region = Region(int(start, 16), int(end, 16))
            anonymous = access.startswith("rw") and inode == "0" and name in ("", "[heap]")
        elif anonymous and line.startswith("Rss:"):
            size = region.end - region.start
            if size >= _LEAST and int(line.split()[1]) * 1024 >= _FILLED * size:
                regions.append(region)
    return regions


def collapse(except_for: Collection[Region] = ()) -> int:
    """Gather every filled region but the given ones into huge pages; returns the bytes that are in them now.

    Costs about two seconds a gigabyte, once. A region that the kernel refuses stays as it is.
    """
    madvise = getattr(ctypes.CDLL(None), "madvise", None) if _MAPS.exists() else None
    if madvise is None:
        return 0
    done = 0
    for region in filled_regions():
        start, end = -(-region.start // _PAGE) * _PAGE, region.end // _PAGE * _PAGE
        if region in except_for or start >= end:
            continue
        if madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_COLLAPSE) == 0:
            done += end - start
    return done
