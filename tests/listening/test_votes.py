"""From answers to numbers: import, the store's tables, opinions with intervals, and bad files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit.compare.opinions import listeners, opinions
from labkit.errors import UserError
from labkit.listening.order import ordered
from labkit.listening.trials import ListeningTest, make_test
from labkit.listening.votes import answered, import_votes, vote_on
from labkit.results.ratings import append_votes, ratings_file, read_votes
from labkit.results.store import DamagedDocumentWarning, Store, load_long, load_wide
from tests.listening.conftest import BASE, OTHER
from tests.results.factory import TEXTS


def answers(test: ListeningTest, rater: str, shift: int = 0) -> dict[str, Any]:
    """What a page saves for a listener who gives the base 4, the other 2 and muffled clips 1."""
    votes = []
    for trial in ordered(test, rater):
        clip = test.clips[trial.clips[0]]
        score = 1 if clip.muffled else (4 if clip.recipe == BASE else 2) + shift
        votes.append({"trial": trial.id, "answer": score, "at": "2026-01-31T12:00:00Z"})
    return {"format": 1, "test": test.id, "rater": rater, "votes": votes}


def saved(tmp_path: Path, values: Any) -> Path:
    path = tmp_path / "votes.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def test_imported_votes_are_in_the_store_s_tables(store: Store, tmp_path: Path) -> None:
    test = make_test(store, [BASE, OTHER])
    found = import_votes(store, saved(tmp_path, answers(test, "Ana")))
    assert (found.added, found.known, found.missing) == (8, 0, 0)
    again = import_votes(store, saved(tmp_path, answers(test, "Ana")))
    assert (again.added, again.known) == (0, 8)
    long = load_long(store.folder)
    votes = long[long["metric"] == "human_mos"]
    assert len(votes) == 2 * len(TEXTS) and set(votes["rater"]) == {"Ana"} and set(votes["unit"]) == {"score"}
    assert set(long.loc[long["level"] != "vote", "rater"].isna()) == {True}
    wide = load_wide(store.folder).set_index("recipe")
    assert wide["human_mos_mean"].to_dict() == {BASE: 4.0, OTHER: 2.0}
    assert wide["human_mos_n"].eq(3).all()


def test_opinions_have_intervals_over_listeners_and_texts(store: Store, tmp_path: Path) -> None:
    test = make_test(store, [BASE, OTHER])
    import_votes(store, saved(tmp_path, answers(test, "Ana")))
    alone = opinions(store).set_index("recipe")
    assert alone.loc[BASE, "mean"] == 4 and np.isnan(alone.loc[BASE, "low"])
    assert "one rater" in alone.loc[BASE, "reason"]
    import_votes(store, saved(tmp_path, answers(test, "Bo", shift=1)))
    both = opinions(store).set_index("recipe")
    assert both.loc[BASE, "mean"] == 4.5 and both.loc[BASE, "low"] < 4.5 < both.loc[BASE, "high"]
    assert both.loc[OTHER, ["listeners", "texts", "votes"]].tolist() == [2, 3, 6]
    assert opinions(store, leave_out=["Bo"]).set_index("recipe").loc[BASE, "mean"] == 4
    people = listeners(store).set_index("rater")
    assert people["muffled_below"].tolist() == [1, 1] and people["repeat_within_1"].tolist() == [1, 1]
    assert people["remark"].tolist() == ["", ""]


def test_a_listener_who_does_not_hear_the_anchor_is_named(store: Store, tmp_path: Path) -> None:
    test = make_test(store, [BASE, OTHER])
    values = answers(test, "Ana")
    for vote in values["votes"]:
        vote["answer"] = 3
    import_votes(store, saved(tmp_path, values))
    assert "muffled" in listeners(store)["remark"][0]


def test_preferences_are_signed_towards_the_run_held_against_the_base(store: Store) -> None:
    test = make_test(store, [BASE, OTHER], kind="ab")
    for trial in ordered(test, "Ana"):
        asked = test.trial(trial.id)
        answer = {"": asked.clips[1], "low": asked.clips[0], "null": "same"}[asked.anchor]
        append_votes(store.folder, [vote_on(test, trial, answer, rater="Ana")])
    found = opinions(store).iloc[0]
    assert (found["metric"], found["recipe"], found["against"], found["mean"]) == ("human_ab", OTHER, BASE, 1)
    person = listeners(store).iloc[0]
    assert (person["muffled_below"], person["null_same"]) == (1, 1)
    assert answered(store, test, "Ana") == {trial.id for trial in test.trials}
    assert answered(store, test, "Bo") == set()


def test_the_last_vote_counts_and_a_torn_line_is_passed_over(store: Store) -> None:
    test = make_test(store, [BASE, OTHER])
    trial = next(t for t in test.trials if not t.anchor)
    append_votes(store.folder, [vote_on(test, trial, 2, rater="Ana")])
    path = ratings_file(store.folder, test.id, "Ana")
    path.write_bytes(path.read_bytes() + b'{"test": "cut o')
    append_votes(store.folder, [vote_on(test, trial, 5, rater="Ana")])
    votes, problems = read_votes(store.folder)
    assert [vote.value for vote in votes] == [5]
    assert len(problems) == 1 and "line 2" in problems[0]
    with pytest.warns(DamagedDocumentWarning, match="line 2"):
        load_wide(store.folder)


def test_names_of_listeners_make_safe_files_of_their_own(tmp_path: Path) -> None:
    names = ["Ana", "ana", "../../etc", "安娜", "/", "a" * 300]
    files = {ratings_file(tmp_path, "t", name) for name in names}
    assert len(files) == len(names)
    assert all(file.parent == tmp_path / "ratings" and len(file.name) < 80 for file in files)


@pytest.mark.parametrize(("change", "message"), [
    ("{", "no JSON"),
    ("[]", "not what a listening page saves"),
    ({"format": 2}, "format 1"),
    ({"rater": "  "}, "nobody's"),
    ({"rater": None}, "rater missing"),
    ({"votes": []}, "holds no votes"),
    ({"votes": [1]}, "is no vote"),
    ({"votes": [{"trial": "t0", "answer": 3, "at": ""}]}, "no trial 't0'"),
    ({"test": "elsewhere"}, "has no key"),
])  # fmt: skip
def test_a_file_that_is_no_page_s_is_refused(store: Store, tmp_path: Path, change, message: str) -> None:
    test = make_test(store, [BASE, OTHER])
    values = change if isinstance(change, str) else answers(test, "Ana") | change
    with pytest.raises(UserError, match=message):
        import_votes(store, saved(tmp_path, values))
    assert not read_votes(store.folder)[0]


@pytest.mark.parametrize("answer", [0, 6, "4", 2.5, True, None, [1]])
def test_an_answer_that_cannot_be_adds_nothing(store: Store, tmp_path: Path, answer: Any) -> None:
    values = answers(make_test(store, [BASE, OTHER]), "Ana")
    values["votes"][-1]["answer"] = answer
    with pytest.raises(UserError, match="is no answer"):
        import_votes(store, saved(tmp_path, values))
    assert not read_votes(store.folder)[0]


def test_a_file_that_is_not_there_is_named(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.json cannot be read"):
        import_votes(store, tmp_path / "gone.json")
