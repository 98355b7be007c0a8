"""What listeners said, on the page: apart from proxies, with intervals, and only of the runs that are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.report import build_report
from labkit.report.opinions import ballots
from labkit.results.ratings import Vote, append_votes
from labkit.results.store import Store
from tests.report.test_html import Tags, fill
from tests.results.factory import TEXTS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return fill(Store(tmp_path / "results"))


def runs_of(store: Store) -> dict[str, str]:
    return {each.spec.recipe.name: each.run_id for each in store.documents() if each.status == "ok"}


def rate(store: Store, values: dict[str, dict[str, int]], recipe: str = "torch-fp32", **changes: str) -> None:
    """Votes of a test `t`: listener -> text -> value."""
    append_votes(
        store.folder,
        [
            Vote(
                **{
                    "test": "t", "trial": f"{text} {recipe} {changes}", "metric": "human_mos", "rater": rater,
                    "item": text, "run_id": runs_of(store)[recipe], "recipe": recipe, "value": value, "at": "2026",
                    **changes,
                }
            )
            for rater, of_texts in values.items()
            for text, value in of_texts.items()
        ],
    )  # fmt: skip


TWO = {"Ana": dict(zip(TEXTS, (4, 5, 3), strict=True)), "Bo": dict(zip(TEXTS, (4, 4, 3), strict=True))}


def test_a_mean_stands_on_its_scale_with_its_interval(store: Store) -> None:
    rate(store, TWO)
    (ballot,), unseen = ballots(store, set(runs_of(store).values()), {"torch-fp32": "#abc"})
    (row,) = ballot.rows
    assert (row.recipe, row.colour, row.mean, unseen) == ("torch-fp32", "#abc", "3.83", "")
    assert row.counts == "2 listeners, 3 texts, 6 votes" and ballot.title == "Mean opinion · test t"
    assert row.place == pytest.approx(100 * (3.833 - 1) / 4, abs=0.1)
    assert row.left < row.place < row.left + row.width <= 100


def test_a_lone_listener_has_a_mean_and_the_reason_for_no_interval(store: Store) -> None:
    rate(store, {"Ana": {TEXTS[0]: 4}})
    (ballot,), _ = ballots(store, set(runs_of(store).values()), {})
    assert ballot.rows[0].width == 0 and "one rater tells nothing" in ballot.rows[0].span
    assert ballot.rows[0].counts == "1 listener, 1 text, 1 vote"


def test_preferences_have_a_sign_and_what_they_were_held_against(store: Store) -> None:
    base = {"metric": "human_ab", "against": runs_of(store)["torch-fp32"], "base": "torch-fp32"}
    rate(store, {"Ana": {TEXTS[0]: 1, TEXTS[1]: 1}, "Bo": {TEXTS[0]: 1, TEXTS[1]: 0}}, "ort-fp32", **base)
    (ballot,), _ = ballots(store, set(runs_of(store).values()), {})
    assert (ballot.rows[0].against, ballot.rows[0].mean, ballot.rows[0].place) == (
        "torch-fp32",
        "+0.75",
        87.5,
    )
    nothing, unseen = ballots(store, {runs_of(store)["ort-fp32"]}, {})  # one side of the pair is not there
    assert nothing == [] and unseen == "4 votes are about runs that are not on this page."


def test_a_listener_who_misses_the_muffled_clip_is_named(store: Store) -> None:
    rate(store, TWO)
    rate(store, {"Bo": {TEXTS[0]: 5}}, anchor="low")
    (ballot,), _ = ballots(store, set(runs_of(store).values()), {})
    assert ballot.rows[0].mean == "3.83"  # such a trial enters no mean
    assert ballot.remarks == (
        "Bo did not hear that the muffled clip was worse; the votes are counted all the same",
    )


def test_the_page_keeps_opinions_apart_from_proxies(store: Store) -> None:
    assert "no listener was asked" in build_report(store, sweep="demo").read_text(encoding="utf-8")
    rate(store, TWO)
    text = build_report(store, sweep="demo").read_text(encoding="utf-8")
    assert "no listener was asked" not in text and "What listeners said" in text
    proxies, _, rest = text.partition("What listeners said")
    assert "P808" in proxies and "P808" not in rest.partition("</section>")[0]
    assert "3.83" in rest.partition("</section>")[0] and Tags(text).open == []
