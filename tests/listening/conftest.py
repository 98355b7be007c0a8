"""A store with two runs of made-up clips, for every listening test."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.results.store import Store
from tests.results.factory import TEXTS, clip, document

BASE, OTHER = "torch-fp32", "ort-int8-dynamic"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "results")
    for number, name in enumerate((BASE, OTHER)):
        audio = {f"{item}.flac": clip(200 + 40 * i + 5 * number, 0.6) for i, item in enumerate(TEXTS)}
        store.write(document(name), audio=audio)
    return store
