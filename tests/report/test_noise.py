"""A disturbed machine is named; a quiet one is not."""

from __future__ import annotations

import pytest

from labkit.report.noise import caution, core_share
from labkit.report.ratios import speed_against, speedup_hint, speedup_words
from labkit.report.tables import markdown_table
from labkit.results.schema import RunDocument
from tests.results.factory import document, failed, spec


def with_share(share: float, name: str = "torch-fp32", **changes) -> RunDocument:
    made = document(name, **changes)
    samples = [
        sample.model_copy(update={"values": sample.values | {"cpu_s": share * sample.values["latency_s"]}})
        for sample in made.samples
    ]
    return made.model_copy(update={"samples": tuple(samples)})


def test_the_share_is_cpu_time_for_each_second_of_latency() -> None:
    assert core_share(with_share(0.42)) == pytest.approx(0.42)
    assert core_share(failed("ort-fp32")) is None


def test_a_device_run_is_not_judged_by_its_cpu_time() -> None:
    assert core_share(with_share(0.1, spec=spec(device="cuda"))) is None


def test_disturbed_runs_are_counted_and_the_worst_is_named() -> None:
    words = caution([with_share(0.97), with_share(0.31, "torch-bf16"), with_share(0.6, "ort-fp32")])
    assert "2 of 3 runs" in words and "torch-bf16 got 31% of one" in words


def test_a_quiet_machine_is_not_mentioned() -> None:
    runs = [with_share(0.98), with_share(1.8, "ort-fp32")]
    assert caution(runs) == ""
    assert "busy" not in markdown_table(runs)


def test_the_caution_stands_in_the_tables() -> None:
    assert "The machine was busy" in markdown_table([with_share(0.5)])


def test_where_a_run_waited_for_its_core_cpu_time_is_compared() -> None:
    quiet, waiting = with_share(0.98), with_share(0.49)
    assert speed_against(quiet, with_share(0.97)).metric == "rtf"
    found = speed_against(quiet, waiting)  # as long by the clock, half of it spent waiting
    assert found.metric == "cpu_s" and speedup_words(found).lstrip("~") == "2.00x"
    assert speedup_hint(found).startswith("of CPU time, because the machine was busy")
