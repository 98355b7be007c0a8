from __future__ import annotations

from labkit.measure.samples import SampleRecorder
from labkit.scenarios import run_scenario
from tests.scenarios.fakes import REFERENCES, TEXTS, FakeDriver, FakePipeline, spec


def test_the_recipe_chooses_its_own_codes_even_where_references_exist() -> None:
    driver = FakeDriver()
    run_scenario("single", FakePipeline(driver), spec(), TEXTS, REFERENCES, SampleRecorder())
    assert {steps for _, _, steps in driver.calls} == {None}
