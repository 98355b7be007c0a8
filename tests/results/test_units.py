"""One table prints every number: the right unit, few digits, and a dash for what is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.results.units import METRICS, base_name, describe, format_value


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("latency_s_p50", 0.2612, "261 ms"),
        ("latency_s_p50", 12.34, "12.3 s"),
        ("step_s_p99", 0.00000321, "3.21 µs"),
        ("rss_peak_bytes", 412_300_000, "412 MB"),
        ("size_on_disk_bytes", 1_100_000_000, "1.10 GB"),
        ("bandwidth_bytes_per_s", 11.2e9, "11.2 GB/s"),
        ("rtf_p50", 0.1234, "0.123"),
        ("rtfx_p50", 8.1, "8.10x"),
        ("wer_mean", 0.045, "4.5 %"),
        ("roofline_share", 0.5612, "56.1 %"),
        ("dnsmos_p808_mean", 3.1415, "3.14"),
        ("log_mel_db_mean", 0.5, "0.50 dB"),
        ("log_mel_db_mean", -0.001, "0.00 dB"),
        ("steps_per_s_p50", 331.4, "331/s"),
        ("steps_p50", 60.0, "60"),
        ("latency_s_p50", None, "—"),
        ("latency_s_p50", float("nan"), "—"),
        ("latency_s_p50", 0.0, "0 µs"),
    ],
)
def test_values_print_with_their_unit(column: str, value: float | None, text: str) -> None:
    assert format_value(column, value) == text


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("warm_read_bytes_per_s", "B/s"),
        ("energy_per_s", "/s"),
        ("idle_s", "s"),
        ("cache_bytes", "B"),
        ("odd", ""),
    ],
)
def test_unlisted_metrics_are_read_by_their_suffix(name: str, unit: str) -> None:
    assert describe(name).unit == unit


def test_statistics_share_the_line_of_their_metric() -> None:
    assert describe("latency_s_p90") is METRICS["latency_s"]
    assert base_name("wer_mean") == "wer"
    assert base_name("bandwidth_bytes_per_s") == "bandwidth_bytes_per_s"


@given(st.sampled_from(sorted(METRICS)), st.floats(-1e15, 1e15))
def test_any_finite_value_prints_short_and_starts_with_a_number(name: str, value: float) -> None:
    text = format_value(name, value)
    assert re.match(r"-?\d", text)
    assert len(text) <= 24
