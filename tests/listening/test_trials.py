"""What is asked: every clip once, anchors apart, names hidden, a key that can be read back."""

from __future__ import annotations

import pytest

from labkit.errors import StoreError, UserError
from labkit.listening.order import ordered
from labkit.listening.trials import make_test, read_test
from labkit.results.store import Store
from tests.listening.conftest import BASE, OTHER
from tests.results.factory import TEXTS, clip, document, failed


def test_ratings_hear_every_clip_once_and_test_the_listener(store: Store) -> None:
    test = make_test(store, [BASE, OTHER])
    plain = [test.clips[trial.clips[0]] for trial in test.trials if not trial.anchor]
    assert sorted((c.recipe, c.item) for c in plain) == sorted((r, i) for r in (BASE, OTHER) for i in TEXTS)
    assert sorted(trial.anchor for trial in test.trials if trial.anchor) == ["low", "repeat"]
    clear, muffled = test.example()
    assert muffled.muffled and not clear.muffled and clear.item == muffled.item


def test_pairs_hold_each_run_against_the_first(store: Store) -> None:
    store.write(document("torch-bf16"), audio={f"{item}.flac": clip() for item in TEXTS})
    test = make_test(store, [BASE, OTHER, "torch-bf16"], kind="ab")
    pairs = [(test.clips[t.clips[0]], test.clips[t.clips[1]]) for t in test.trials if not t.anchor]
    assert len(pairs) == 2 * len(TEXTS)
    assert {base.recipe for base, _ in pairs} == {BASE} and {o.recipe for _, o in pairs} == {
        OTHER,
        "torch-bf16",
    }
    assert all(base.item == other.item for base, other in pairs)
    assert sorted(trial.anchor for trial in test.trials if trial.anchor) == ["low", "null"]


def test_the_same_question_is_the_same_test_and_its_key_is_kept(store: Store) -> None:
    test = make_test(store, [BASE, OTHER], seed=3)
    assert make_test(store, [BASE, OTHER], seed=3) == test == read_test(store, test.id)
    assert make_test(store, [BASE, OTHER], seed=4).id != test.id
    assert not any(
        part in "".join([*test.clips, *(t.id for t in test.trials)]) for part in (BASE, OTHER, *TEXTS)
    )


def test_every_listener_has_an_order_of_their_own_and_keeps_it(store: Store) -> None:
    test = make_test(store, [BASE, OTHER], kind="ab")
    orders = {
        rater: [(t.id, t.clips) for t in ordered(test, rater)] for rater in ("Ana", "Bo", "Chen", "Dee")
    }
    assert orders["Ana"] == [(t.id, t.clips) for t in ordered(test, "Ana")]
    assert len({tuple(order) for order in orders.values()}) > 1
    assert all(sorted(t for t, _ in order) == sorted(t.id for t in test.trials) for order in orders.values())
    sides = [clips == test.trial(name).clips for order in orders.values() for name, clips in order]
    assert any(sides) and not all(sides)


@pytest.mark.parametrize(("runs", "how", "message"), [
    (["torch-fp23", OTHER], {}, "no run 'torch-fp23'.*recipes that can be heard: ort-int8-dynamic, torch-fp32"),
    ([BASE, BASE], {}, "named twice"),
    ([], {}, "needs runs"),
    ([BASE], {"kind": "ab"}, "at least two runs"),
    ([BASE, OTHER], {"texts": 1}, "1 texts have audio"),
    ([BASE, OTHER], {"kind": "abx"}, "mos or ab"),
])  # fmt: skip
def test_a_test_that_cannot_be_is_refused(store: Store, runs, how, message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_test(store, runs, **how)


def test_unlike_voices_are_not_compared_by_ear(store: Store) -> None:
    store.write(document("torch-bf16", weights_hash="other"), audio={f"{i}.flac": clip() for i in TEXTS})
    with pytest.raises(UserError, match="not of one voice"):
        make_test(store, [BASE, "torch-bf16"])
    store.write(failed("upstream"))
    with pytest.raises(UserError, match="no run 'upstream'"):
        make_test(store, [BASE, "upstream"])


def test_an_unknown_or_damaged_key_is_named(store: Store) -> None:
    test = make_test(store, [BASE, OTHER])
    with pytest.raises(UserError, match=f"tests with one: {test.id}"):
        read_test(store, "nothere")
    (store.folder / "listening" / f"{test.id}.json").write_text('{"id": 1')
    with pytest.raises(StoreError, match="make the test again"):
        read_test(store, test.id)
