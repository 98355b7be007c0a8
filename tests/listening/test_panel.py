"""The notebook's panel, driven as its buttons and its field for keys drive it."""

from __future__ import annotations

import pytest

from labkit.errors import UserError
from labkit.listening.trials import make_test
from labkit.results.ratings import read_votes
from labkit.results.store import Store
from tests.listening.conftest import BASE, OTHER

pytest.importorskip("ipywidgets")
from labkit.listening.panel import ListeningPanel


def test_each_answer_is_kept_at_once_and_the_next_panel_goes_on(store: Store) -> None:
    test = make_test(store, [BASE, OTHER])
    panel = ListeningPanel(store, test, "Ana")
    assert "1 of 8" in panel.heading.value and panel.players[0].value
    panel.buttons[3].click()
    panel.keys.value = "2"
    assert panel.keys.value == ""
    assert [vote.value for vote in read_votes(store.folder)[0]] == [4, 2]
    for nothing in ("9", "0", "x"):
        panel.keys.value = nothing
    assert "3 of 8" in panel.heading.value
    again = ListeningPanel(store, test, "Ana")
    assert "3 of 8" in again.heading.value and again.open[0].id == panel.open[0].id
    for _ in range(6):
        again.answer(5)
    assert "Thank you" in again.heading.value and again.widget.children == (again.heading,)
    again.answer(5)
    assert len(read_votes(store.folder)[0]) == 8


def test_pairs_have_two_players_and_count_by_run(store: Store) -> None:
    test = make_test(store, [BASE, OTHER], kind="ab")
    panel = ListeningPanel(store, test, "Bo")
    assert len(panel.players) == 2 and len(panel.buttons) == 3
    while panel.open:
        trial = panel.open[0]
        panel.answer(1 if trial.clips[0] == test.trial(trial.id).clips[-1] else 3)  # always the other run
    votes = [vote for vote in read_votes(store.folder)[0] if not vote.anchor]
    assert [vote.value for vote in votes] == [1, 1, 1] and {vote.base for vote in votes} == {BASE}


def test_a_listener_needs_a_name(store: Store) -> None:
    with pytest.raises(UserError, match="name"):
        ListeningPanel(store, make_test(store, [BASE, OTHER]), " ")
