"""Answers to trials become votes in the results store; a page's file of answers is read and checked here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labkit.errors import UserError
from labkit.listening.trials import METRIC, ListeningTest, Trial, read_test
from labkit.results.ratings import Vote, append_votes, read_votes
from labkit.results.store import Store

FORMAT = 1
SAME = "same"  # the answer to a pair that sounds alike


@dataclass(frozen=True)
class Imported:
    """What became of a file of answers."""

    test: str
    rater: str
    added: int
    known: int
    missing: int


def vote_on(test: ListeningTest, trial: Trial, answer: Any, *, rater: str, at: str = "") -> Vote:
    """A vote from an answer: 1 to 5 for a rating; for a pair the id of the better clip, or `same`.

    `trial` may have its clips in any order. `UserError` when the answer is none of the trial's.
    """
    asked = test.trial(trial.id)
    assert asked is not None
    base, other = test.clips[asked.clips[0]], test.clips[asked.clips[-1]]
    if test.kind == "mos":
        allowed: dict[Any, int] = {value: value for value in range(1, 6)}
    else:
        # where both sides are one clip (the anchor `null`), any preference is a 1, and a wrong one
        allowed = {base.id: -1, other.id: 1, SAME: 0}
    if type(answer) not in (int, str) or answer not in allowed:
        raise UserError(
            f"trial {trial.id}: {answer!r} is no answer; it may be {', '.join(map(str, allowed))}."
        )
    pair = {"against": base.run_id, "base": base.recipe} if test.kind == "ab" else {}
    return Vote(
        test=test.id, trial=trial.id, metric=METRIC[test.kind], rater=rater, item=asked.item, run_id=other.run_id,
        recipe=other.recipe, value=allowed[answer], at=at or datetime.now(UTC).isoformat(timespec="seconds"),
        anchor=asked.anchor, **pair,
    )  # fmt: skip


def import_votes(store: Store, file: Path) -> Imported:
    """Read what a listening page has saved. Importing a file again adds nothing.

    `UserError` for a file that is no page's, whose test has no key in this store, or with an answer that cannot be.
    """
    values = _read(file)
    test = read_test(store, values["test"])
    rater, votes = values["rater"].strip(), []
    for answer in values["votes"]:
        trial = test.trial(answer["trial"])
        if trial is None:
            raise UserError(f"{file}: test {test.id} has no trial {answer['trial']!r}; the file was changed.")
        try:
            votes.append(vote_on(test, trial, answer["answer"], rater=rater, at=answer["at"]))
        except UserError as error:
            raise UserError(f"{file}: {error}") from error
    known = {(vote.test, vote.rater, vote.trial, vote.value, vote.at) for vote in read_votes(store.folder)[0]}
    fresh = [v for v in votes if (v.test, v.rater, v.trial, v.value, v.at) not in known]
    append_votes(store.folder, fresh)
    missing = len(test.trials) - len({vote.trial for vote in votes})
    return Imported(test.id, rater, len(fresh), len(votes) - len(fresh), missing)


def answered(store: Store, test: ListeningTest, rater: str) -> set[str]:
    """The trials that this listener has answered already."""
    votes, _ = read_votes(store.folder)
    return {vote.trial for vote in votes if (vote.test, vote.rater) == (test.id, rater)}


def _read(file: Path) -> dict[str, Any]:
    """The file's values, of the right shape."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise UserError(f"{file} is no JSON ({error}); save the votes again from the page.") from error
    wanted = {"test": str, "rater": str, "votes": list}
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise UserError(f"{file} is not what a listening page saves (format {FORMAT}); save the votes again.")
    wrong = [name for name, kind in wanted.items() if not isinstance(values.get(name), kind)]
    if wrong:
        raise UserError(f"{file}: {', '.join(wrong)} missing; save the votes again from the page.")
    if not values["rater"].strip():
        raise UserError(f"{file}: the votes are nobody's; write the listener's name into 'rater'.")
    if not values["votes"]:
        raise UserError(f"{file} holds no votes.")
    for vote in values["votes"]:
        if not (
            isinstance(vote, dict) and {"trial", "answer", "at"} <= set(vote) and isinstance(vote["at"], str)
        ):
            raise UserError(f"{file}: {vote!r} is no vote; save the votes again from the page.")
    return values
