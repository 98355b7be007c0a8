"""The ladder on the tiny voice: each rung damages more than the one above, and says so with its noise."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from labkit.calibration import recordings
from labkit.errors import CalibrationError, SpecError
from labkit.sensitivity import Rung, ladder, ladder_table
from labkit.sensitivity.ladder import _order
from labkit.sensitivity.rounding import prune_weight
from labkit.voices import Voice

pytestmark = pytest.mark.filterwarnings("ignore:voice .* has random weights")


@pytest.fixture(scope="module")
def rungs(tiny_voice: Voice, tmp_path_factory: pytest.TempPathFactory) -> list[Rung]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(recordings, "RANDOM_STEPS", 4)
        return ladder(tiny_voice, corpus="english-calibration", texts=10)


def test_the_rungs_are_those_of_the_card(rungs: list[Rung]) -> None:
    names = ["int8", "int6", "int4", "int3", "int2", "prune 30 %", "prune 50 %"]
    assert [rung.name for rung in rungs] == names
    assert [rung.order is None for rung in rungs] == [name in ("int8", "prune 30 %") for name in names]


def test_each_rung_is_worse_than_the_one_above(rungs: list[Rung]) -> None:
    assert {rung.order for rung in rungs} == {None, "worse"}
    for kind in ("round", "prune"):
        mine = [rung for rung in rungs if rung.kind == kind]
        divergences = [rung.kl.value for rung in mine]
        assert divergences == sorted(divergences) and divergences[0] > 0
        noises = [rung.sqnr_db for rung in mine]
        assert noises == sorted(noises, reverse=True)
        assert mine[0].top1.value >= mine[-1].top1.value and mine[0].mel_db < mine[-1].mel_db


def test_intervals_hold_their_values_and_rows_can_be_written(rungs: list[Rung]) -> None:
    for rung in rungs:
        for figure in (rung.kl, rung.top1):
            assert figure.low <= figure.value <= figure.high
    assert json.loads(json.dumps([rung.as_dict() for rung in rungs], allow_nan=False))[0]["name"] == "int8"


def test_the_rungs_make_a_table(rungs: list[Rung]) -> None:
    table = ladder_table(rungs)
    assert list(table["weights"]) == [rung.name for rung in rungs] and set(table["than above"]) == {
        "",
        "worse",
    }
    assert table["kl"].iloc[2] == rungs[2].kl.value and (table[["kl ±", "top1 ±"]] >= 0).all(axis=None)


@pytest.mark.parametrize(("shift", "order"), [(0.1, "worse"), (-0.1, "better"), (0.0, "same")])
def test_the_order_is_judged_against_the_noise_of_pairs(shift: float, order: str) -> None:
    """Sentences differ much more from each other than the two rungs do on each of them."""
    above = [(10 + i, {"kl": float(i)}) for i in range(12)]
    rows = [(length, {"kl": row["kl"] + shift + 0.03 * (-1) ** i}) for i, (length, row) in enumerate(above)]
    assert _order(rows, above) == order


@given(st.integers(0, 999), st.floats(0.02, 0.98))
def test_pruning_takes_the_smallest_and_leaves_the_rest(seed: int, share: float) -> None:
    weight = torch.randn(6, 9, generator=torch.Generator().manual_seed(seed))
    new = prune_weight(weight, share)
    gone = new == 0
    assert int(gone.sum()) == round(share * 54) and torch.equal(new[~gone], weight[~gone])
    assert gone.all() or not gone.any() or weight[gone].abs().max() <= weight[~gone].abs().min()


@pytest.mark.parametrize("share", [0.0, 1.0, 30.0])
def test_a_share_of_nothing_or_all_is_refused(share: float) -> None:
    with pytest.raises(SpecError, match="between 0 and 1"):
        prune_weight(torch.ones(4), share)


def test_too_few_texts_are_refused(tiny_voice: Voice) -> None:
    with pytest.raises(CalibrationError, match="5 sentences"):
        ladder(tiny_voice, corpus="english-calibration", texts=5)
