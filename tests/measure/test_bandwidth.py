from __future__ import annotations

import pytest

from labkit.measure.bandwidth import read_bandwidth

MIB = 2**20


@pytest.mark.parametrize("threads", [1, 2])
def test_reads_at_a_plausible_rate(threads: int) -> None:
    probe = read_bandwidth(8 * MIB, threads=threads, rounds=3)
    assert len(probe.rounds_bytes_per_s) == 3
    assert probe.bytes_per_s == max(probe.rounds_bytes_per_s)
    assert 2e8 < probe.bytes_per_s < 2e12 * threads
    assert probe.buffer_bytes == 8 * MIB and probe.threads == threads


def test_a_tiny_step_is_probed_over_a_buffer_that_a_clock_can_time() -> None:
    assert read_bandwidth(0, rounds=1).buffer_bytes == MIB
