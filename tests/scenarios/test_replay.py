from __future__ import annotations

import pytest

from labkit.errors import SpecError
from labkit.measure.samples import SampleRecorder
from labkit.scenarios import run_scenario
from tests.scenarios.fakes import REFERENCES, TEXTS, FakeDriver, FakePipeline, spec


def test_every_call_says_the_codes_of_its_text() -> None:
    driver = FakeDriver()
    run_scenario("replay", FakePipeline(driver), spec(repeats=2), TEXTS, REFERENCES, SampleRecorder())
    said = {(text, steps) for _, text, steps in driver.calls}
    assert said == {("one", 2), ("two three four", 3), ("five six", 4)}


def test_a_text_without_reference_is_named_before_anything_is_said() -> None:
    driver = FakeDriver()
    some = {"a": REFERENCES["a"]}
    with pytest.raises(SpecError, match="'b'"):
        run_scenario("replay", FakePipeline(driver), spec(), TEXTS, some, SampleRecorder())
    assert driver.calls == []
