"""The notebook runs from top to bottom with nobody there, and shows what earlier listeners said."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.listening.order import ordered
from labkit.listening.trials import make_test
from labkit.listening.votes import vote_on
from labkit.results.ratings import append_votes
from labkit.results.store import Store
from labkit.sweep.notebook import execute_notebook
from tests.listening.conftest import BASE, OTHER

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "50_listen.ipynb"


def test_it_asks_and_tells(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("ipywidgets")
    test = make_test(store, [BASE, OTHER], kind="ab", texts=3)
    for rater in ("Ana", "Bo"):
        for trial in ordered(test, rater):
            other = test.trial(trial.id).clips[-1]
            append_votes(store.folder, [vote_on(test, trial, other, rater=rater)])
    output = tmp_path / "listen.ipynb"
    execute_notebook(NOTEBOOK, output, {"store": str(store.folder), "texts": 3})
    text = output.read_text()
    assert f"test {test.id}: 5 trials" in text
    assert "application/vnd.jupyter.widget-view+json" in text
    assert "human_ab" in text and "did not hear that the muffled clip was worse" in text
