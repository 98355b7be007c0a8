from __future__ import annotations

import pytest

from labkit.engines.base import engine_names, get_engine, require_available
from labkit.errors import SpecError, UnavailableError
from labkit.spec import STAGES, StageChoice


def test_every_registered_engine_answers_without_loading_anything() -> None:
    for name in engine_names():
        engine = get_engine(name)
        assert engine.name == name
        for stage in STAGES:
            assert StageChoice().precision in engine.precisions(stage)
        assert all(values for values in engine.run_options.values())


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SpecError, match="torch, torch-compile, ort-cpu"):
        get_engine("tensorflow")


def test_an_unavailable_engine_raises_its_reason_and_remedy() -> None:
    with pytest.raises(UnavailableError, match=r"ort-cpu.*'cuda'.*Use device cpu"):
        require_available("ort-cpu", "cuda")
