from __future__ import annotations

import re

import pytest

from labkit.errors import SpecError
from labkit.search import parse_budget


def test_limits_come_joined_or_apart() -> None:
    joined, apart = parse_budget(["kl<0.01, size<=12"]), parse_budget(["kl < 1e-2", "size<12"])
    assert dict(joined.limits) == dict(apart.limits) == {"kl": 0.01, "size": 12.0}
    assert str(joined) == "kl<0.01, size<12"


def test_a_budget_holds_up_to_its_limit_and_names_what_breaks_it() -> None:
    budget = parse_budget(["kl<0.01,step<0.7"])
    assert budget.holds({"kl": 0.01, "step": 0.5, "size": 1e9})
    assert not budget.holds({"kl": 0.02, "step": 0.5})
    assert budget.broken({"kl": 0.02, "step": 0.8}) == ["kl 0.02 exceeds 0.01", "step 0.8 exceeds 0.7"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read; write a figure"),
        ("kl", "'kl' cannot be read"),
        ("kl<little", "'little' is no number"),
        ("kl>0.01", "less is better in every figure, so write kl<0.01"),
        ("kl<0", "above 0 and finite"),
        ("kl<inf", "above 0 and finite"),
        ("kl<nan", "above 0 and finite"),
        ("sise<3", "'sise' is unknown (did you mean 'size'?)"),
        ("kl<1,kl<2", "limited twice"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        parse_budget([text])
