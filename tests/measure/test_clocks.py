from __future__ import annotations

import time

from labkit.measure.clocks import read_clocks, seconds_since


def test_sleep_costs_wall_time_and_work_costs_cpu_time() -> None:
    before = read_clocks()
    time.sleep(0.05)
    slept = read_clocks() - before
    assert slept.wall_s >= 0.05 and slept.cpu_s < 0.04
    before = read_clocks()
    while read_clocks().cpu_s - before.cpu_s < 0.03:
        pass
    worked = read_clocks() - before
    assert worked.cpu_s >= 0.03 and worked.wall_s >= worked.cpu_s * 0.9


def test_seconds_since_counts_from_another_process_s_clock() -> None:
    assert 0 <= seconds_since(time.monotonic()) < 1
