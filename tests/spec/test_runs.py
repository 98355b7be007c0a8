"""Runs: devices, hashes, and the way through JSON and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from labkit.errors import SpecError
from labkit.spec import Limits, Recipe, RunSpec, check_device, parse_run


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1"])
def test_devices_that_can_be_meant(device: str) -> None:
    check_device(device)


@pytest.mark.parametrize("device", ["", "tpu", "cuda:", "cuda:x", "CPU", "cpu:0"])
def test_other_devices_are_refused(device: str) -> None:
    with pytest.raises(SpecError, match="known devices: cpu, cuda, cuda:N"):
        check_device(device)


def test_a_run_refuses_what_json_cannot_say() -> None:
    with pytest.raises(SpecError, match="cell"):
        parse_run({"recipe": {"name": "x"}, "seed": Path("3")}, place="cell")
    with pytest.raises(SpecError, match="seed"):
        parse_run({"recipe": {"name": "x"}, "seed": float("nan")}, place="cell")


def test_a_seed_fits_the_tables_that_it_goes_into() -> None:
    assert parse_run({"recipe": {"name": "x"}, "seed": 2**63 - 1}, place="cell").seed == 2**63 - 1
    with pytest.raises(SpecError, match=r"seed.*less than or equal to 9223372036854775807"):
        parse_run({"recipe": {"name": "x"}, "seed": 2**63}, place="cell")


def test_equal_work_has_equal_hashes_and_limits_do_not_count() -> None:
    run = RunSpec(recipe=Recipe(name="torch-fp32"))
    assert run.work_hash() == RunSpec(recipe=Recipe(name="torch-fp32")).work_hash()
    assert (
        run.work_hash()
        == run.model_copy(update={"limits": Limits(seconds=1), "keep_audio": True}).work_hash()
    )
    assert run.work_hash() != run.model_copy(update={"seed": 1}).work_hash()


@given(
    threads=st.integers(1, 64), seed=st.integers(0, 2**40), texts=st.none() | st.integers(1, 500),
    speaker=st.none() | st.text(max_size=20),
)  # fmt: skip
def test_a_run_survives_json(threads: int, seed: int, texts: int | None, speaker: str | None) -> None:
    run = RunSpec(recipe=Recipe(name="x"), threads=threads, seed=seed, texts=texts, speaker=speaker)
    again = RunSpec.model_validate_json(run.model_dump_json())
    assert again == run and again.work_hash() == run.work_hash()


def test_specs_are_frozen() -> None:
    with pytest.raises(ValidationError):
        RunSpec(recipe=Recipe(name="x")).seed = 3  # type: ignore[misc]
