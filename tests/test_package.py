"""The public names of the package."""

from __future__ import annotations

import importlib

import pytest

import labkit


@pytest.mark.parametrize("name", ["run", "sweep", "say", "load_wide", "load_long"])
def test_public_functions_stay_functions_when_their_modules_are_imported(name: str) -> None:
    importlib.import_module(labkit._LAZY[name])
    assert callable(getattr(labkit, name))


def test_every_public_name_resolves() -> None:
    for name in labkit.__all__:
        assert getattr(labkit, name) is not None


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="load_wide"):
        _ = labkit.speek
