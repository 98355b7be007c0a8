"""Runs stand in one table when they did the same work; each recipe once, and none that has changed since."""

from __future__ import annotations

import pytest

from labkit.report.alike import sort_runs
from labkit.results.schema import RunDocument
from tests.results.factory import document, failed, spec


def titles(*documents: RunDocument) -> list[str]:
    return [table.title for table in sort_runs(documents).tables]


@pytest.mark.parametrize(
    ("change", "one", "other"),
    [
        ({"texts": 7}, "single · 3 texts", "single · 7 texts"),
        ({"texts": None}, "single · 3 texts", "single · all texts"),
        ({"repeats": 1}, "single · 3 repeats", "single · 1 repeat"),
        ({"max_steps": 64}, "single · max steps 2048", "single · max steps 64"),
        ({"voice": "random"}, "nano · single", "random · single"),
        ({"threads": 2}, "single · 1 thread", "single · 2 threads"),
        ({"seed": 5}, "single · seed 0", "single · seed 5"),
    ],
)
def test_other_work_stands_in_another_table_whose_heading_says_so(
    change: dict[str, object], one: str, other: str
) -> None:
    base = spec()
    assert set(titles(document(), document(spec=base.model_copy(update=change)))) == {one, other}


def test_what_does_not_differ_is_not_named() -> None:
    assert titles(document("torch-fp32"), document("ort-fp32")) == ["single"]


def test_machines_are_told_apart() -> None:
    assert titles(document(), document(machine_class="elsewhere")) == [
        "single · elsewhere",
        "single · x86_64-example-2c",
    ]


def test_the_voice_that_was_measured_last_stands_first_and_its_work_in_order() -> None:
    nano, random = spec(), spec().model_copy(update={"voice": "random"})
    replay = random.model_copy(update={"scenario": "replay"})
    first = [document(spec=nano), document(spec=replay), document(spec=random)]
    assert titles(*first) == ["random · replay", "random · single", "nano · single"]
    assert titles(*first, document("ort-fp32", spec=nano))[0] == "nano · single"


def test_the_newest_amount_of_the_same_work_stands_first() -> None:
    first, second = document(), document(spec=spec().model_copy(update={"texts": 9}))
    assert titles(second, first, document(scenario="replay")) == [
        "single · 9 texts",
        "single · 3 texts",
        "replay · 3 texts",
    ]


@pytest.mark.parametrize(
    ("field", "what"), [("weights_hash", "voice nano"), ("corpus_hash", "corpus nano-eval")]
)
def test_earlier_versions_are_left_out_and_counted(field: str, what: str) -> None:
    old, new = [document(**{field: "old"}) for _ in range(2)], document("ort-fp32")
    found = sort_runs([new, *old][::-1])
    assert [table.documents for table in found.tables] == [(new,)]
    assert found.outdated == {what: 2}
    assert f"2 of another version of {what}" in found.outdated_words


def test_another_voice_makes_no_voice_outdated() -> None:
    found = sort_runs([document(), document(spec=spec(voice="random"), weights_hash="other")])
    assert len(found.tables) == 2
    assert not found.outdated_words


def test_a_run_that_never_knew_its_weights_is_shown() -> None:
    broken = failed("ort-fp32", weights_hash=None, corpus_hash=None)
    [table] = sort_runs([document(), broken]).tables
    assert broken in table.documents


def test_a_rerun_replaces_the_earlier_run_and_ok_beats_failed() -> None:
    first, again, broken = document(), document(), failed("torch-fp32")
    other = failed("ort-fp32")
    found = sort_runs([first, again, broken, other])
    assert [table.documents for table in found.tables] == [(again, other)]
    assert not found.outdated_words


def test_a_recipe_that_was_changed_under_its_name_stands_once() -> None:
    changed = spec().model_copy(
        update={"recipe": spec("ort-fp32").recipe.model_copy(update={"name": "torch-fp32"})}
    )
    old, new = document(), document(spec=changed)
    found = sort_runs([old, new])
    assert [table.documents for table in found.tables] == [(new,)]
    assert found.outdated == {"recipe torch-fp32": 1}


def test_no_runs_make_no_tables() -> None:
    assert sort_runs([]).tables == ()
