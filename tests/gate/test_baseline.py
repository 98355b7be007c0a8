"""Baselines as files: whole, small, and refused when they do not fit or cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from labkit.errors import StoreError, UserError
from labkit.gate.baseline import list_baselines, misfits, read_baseline, write_baseline
from labkit.gate.spec import REFERENCE
from labkit.run.request import plan_run
from labkit.spec import default_recipes
from tests.gate.factory import baseline, gate_spec


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_baseline(baseline(tmp_path / "baselines" / "base"))
    return tmp_path


def test_what_was_written_is_read_back(written: Path) -> None:
    made, read = baseline(written / "baselines" / "base"), read_baseline("base", written)
    assert read.about == made.about and list(read.scores) == ["torch-fp32", "ort-fp32"]
    item = next(iter(made.about.items))
    assert read.scores["ort-fp32"]["tier3"]["wer"][item] == pytest.approx(
        made.scores["ort-fp32"]["tier3"]["wer"][item], rel=1e-5
    )
    for mine, theirs in zip(
        vars(made.anchors[item]).values(), vars(read.anchors[item]).values(), strict=True
    ):
        assert np.array_equal(mine, theirs)


def test_by_name_and_by_path(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list_baselines(written) == ["base"]
    assert read_baseline(str(written / "baselines" / "base")).name == "base"
    monkeypatch.setenv("LABKIT_RESULTS", str(written))
    assert read_baseline("base").name == "base"


def test_scores_are_one_metric_a_line(written: Path) -> None:
    lines = (written / "baselines" / "base" / "scores.json").read_text().splitlines()
    assert sum(line.strip().startswith('"kl":') for line in lines) == 2  # one a recipe
    assert json.loads("\n".join(lines))


def test_no_baseline_is_a_user_s_error_with_the_known_ones(written: Path) -> None:
    with pytest.raises(UserError, match=r"no baseline.*: base\. Record one: labkit baseline record nano-cpu"):
        read_baseline("nano-cpu", written)


@pytest.mark.parametrize("name", ["baseline.json", "scores.json", "reference.npz"])
def test_a_damaged_file_is_named(written: Path, name: str) -> None:
    file = written / "baselines" / "base" / name
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StoreError, match=r"(?s)cannot be read.*restore it or record it anew"):
        read_baseline("base", written)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"weights_hash": "0" * 64}, "another voice"),
        ({"corpus_hash": "0" * 64}, "another corpus"),
        ({"gate": gate_spec(max_steps=99)}, "max_steps 99"),
        ({"gate": gate_spec(audio_path="codes")}, "audio_path 'codes'"),
        ({"gate": gate_spec(seeds=(7,), tiers=(0, 3))}, r"seeds \(7,\)"),
    ],
)
def test_a_baseline_of_something_else_does_not_fit(tmp_path: Path, change: dict, reason: str) -> None:
    import re

    spec = gate_spec(tiers=(0, 1, 2, 3))
    plan = plan_run(spec.run_spec(default_recipes()[REFERENCE]))
    assert misfits(baseline(tmp_path), spec, plan) == []
    (found,) = misfits(baseline(tmp_path, **change), spec, plan)
    assert re.search(reason, found)


def test_a_baseline_of_fewer_sentences_does_not_fit(tmp_path: Path) -> None:
    small = baseline(tmp_path, gate_spec(texts=10))
    plan = plan_run(gate_spec().run_spec(default_recipes()[REFERENCE]))
    (found,) = misfits(small, gate_spec(), plan)
    assert "lacks 20 of the 30 sentences" in found


def test_seeds_do_not_matter_without_free_speech(tmp_path: Path) -> None:
    spec = gate_spec(seeds=(7,))
    plan = plan_run(spec.run_spec(default_recipes()[REFERENCE]))
    assert misfits(baseline(tmp_path), spec, plan) == []
