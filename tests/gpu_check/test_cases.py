from __future__ import annotations

import itertools
import json

import pytest

from labkit.artifacts import check_recipe
from labkit.gpu_check.cases import BATCHES, CASES, Work, run_spec, work_hash
from labkit.spec import RunSpec


def test_every_combination_is_there_once() -> None:
    asked = itertools.product(("nano", "random"), ("eager", "compiled", "graph"), ("fp32", "bf16", "fp16"))
    assert sorted((case.voice, case.mode, case.precision) for case in CASES) == sorted(asked)
    assert all(case.batches == BATCHES for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_spec_is_what_the_lab_would_dump(case) -> None:
    for batch in BATCHES:
        plain = run_spec(case, Work(), batch, "cuda", 2)
        spec = RunSpec.model_validate_json(json.dumps(plain))
        assert spec.model_dump(mode="json") == plain
        assert spec.work_hash() == work_hash(plain)
        check_recipe(spec.recipe, "cuda")


def test_work_is_the_same_every_time_and_a_batch_mixes_lengths() -> None:
    work = Work(prompt=40, steps=5)
    rows = work.rows(8, 100)
    assert [len(row) for row in rows] == [40, 37, 34, 31, 28, 25, 22, 19]
    assert all((a == b).all() for a, b in zip(rows, work.rows(8, 100), strict=True))
    codes = work.codes(8)
    assert all(each.shape == (5, 4) and each.max() < 625 for each in codes)
    assert work.corpus_hash(1) != work.corpus_hash(8) != Work(prompt=41, steps=5).corpus_hash(8)
