"""Many verdicts, one exit code: what outweighs what."""

from __future__ import annotations

import pytest

from labkit.compare import Margin, Verdict, overall
from labkit.compare.verdicts import Outcome


def made(outcome: Outcome, *, gates: bool = True, optional: bool = False) -> Verdict:
    return Verdict(Margin("m", "paired", "higher", 0.1, 0.2, 8, optional=optional), outcome, gates=gates)


@pytest.mark.parametrize(
    ("outcomes", "word", "exit_code"),
    [
        (["pass", "pass"], "pass", 0),
        (["pass", "fail", "inconclusive", "not comparable"], "fail", 1),
        (["pass", "inconclusive"], "inconclusive", 3),
        (["pass", "not comparable"], "inconclusive", 3),
        (["not comparable", "not comparable"], "not comparable", 2),
        ([], "not comparable", 2),
    ],
)
def test_the_weightiest_outcome_decides(outcomes: list[Outcome], word: str, exit_code: int) -> None:
    found = overall([made(each) for each in outcomes])
    assert (found.outcome, found.exit_code) == (word, exit_code)
    assert sum(found.counts.values()) == len(outcomes)


def test_inconclusive_may_be_let_through_but_never_a_failure() -> None:
    doubtful = [made("pass"), made("inconclusive")]
    assert overall(doubtful, inconclusive_exit=0).exit_code == 0
    assert overall(doubtful, inconclusive_exit=0).outcome == "inconclusive"
    assert overall([*doubtful, made("fail")], inconclusive_exit=0).exit_code == 1


def test_what_only_informs_does_not_count() -> None:
    found = overall([made("pass"), made("fail", gates=False), made("inconclusive", gates=False)])
    assert (found.outcome, found.counts) == ("pass", {"pass": 1})
    assert overall([made("pass", gates=False)]).exit_code == 2


def test_an_optional_metric_may_be_missing_but_not_doubtful() -> None:
    assert overall([made("pass"), made("not comparable", optional=True)]).exit_code == 0
    assert overall([made("pass"), made("inconclusive", optional=True)]).exit_code == 3
    assert overall([made("not comparable", optional=True)]).exit_code == 2


def test_the_deciding_verdicts_are_named() -> None:
    failed = made("fail")
    assert overall([made("pass"), failed, made("inconclusive")]).deciding == (failed,)
