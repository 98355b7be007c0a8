"""The versions that are installed, that answered, and that the docs name are the same ones."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from labkit.upstream.golden import read_golden

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    script = runpy.run_path(str(ROOT / "scripts" / "make_upstream_env"))
    exact = [pin for pin in (*script["PINS"], *script["PINS_ALONE"]) if "==" in pin]
    return {"torch": script["TORCH"], **dict(pin.split("==") for pin in exact)}


def test_the_golden_arrays_come_from_the_pinned_versions(pins: dict[str, str]) -> None:
    answered = read_golden(ROOT / "tests" / "golden" / "upstream_small.npz").about["versions"]
    pinned = {name: version.partition("+")[0] for name, version in answered.items() if name in pins}
    assert len(pinned) == 6
    assert pinned == {name: pins[name] for name in pinned}


@pytest.mark.parametrize("document", ["docs/upstream.md", "tests/golden/README.md"])
def test_the_docs_name_the_pinned_versions(document: str, pins: dict[str, str]) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = [name for name in ("chattts", "torch", "transformers", "vector_quantize_pytorch") if name in text]
    assert len(named) == 4
    assert [f"{name} {pins[name]}" for name in named if pins[name] not in text] == []
