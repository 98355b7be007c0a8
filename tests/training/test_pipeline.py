"""The whole recipe on synthetic tones, a few steps a stage: it must end in a voice that the lab can open and hear."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from labkit.errors import UserError
from labkit.training import STAGES, train_nano


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nano")
    calib = folder / "calib"
    calib.mkdir()
    (calib / "nano-heldout.txt").write_text(
        "# comment\none two three\n\nfour four\nfive six one\nnine zero\n"
    )
    (calib / "nano-eval.txt").write_text("six six\n")
    (calib / "nano-domain-heldout.txt").write_text("close the window\nturn left\n")
    (calib / "nano-domain-eval.txt").write_text("turn right\n")
    train_nano(out=folder / "work", calib=calib, smoke=True, say=lambda _: None)
    return folder


def test_every_stage_leaves_its_work(work: Path) -> None:
    for stage in ("vocoder/polish", "tune"):
        assert (work / "work" / stage / "last.pt").exists()
    for stage in ("dvae", "vocoder", "gpt", "decoder"):
        log = [json.loads(line) for line in (work / "work" / stage / "log.jsonl").read_text().splitlines()]
        assert [r["step"] for r in log] == [2, 4]
        assert (work / "work" / stage / "last.pt").exists()


@pytest.mark.parametrize("path", ["hidden", "codes"])
def test_the_packed_voice_speaks_through_the_lab(work: Path, path: str) -> None:
    from labkit.model.sampling import SamplingParams
    from labkit.pipeline import open_pipeline
    from labkit.spec import Recipe
    from labkit.synthesis import Request, speak
    from labkit.voices import resolve_voice

    voice = resolve_voice(str(work / "work" / "asset"))
    assert list(voice.speakers()) == ["gongitsune", "nezumi", "tebukuro", "kumo"]
    request = Request("one two", voice.speakers()["kumo"], sampling=SamplingParams(max_steps=8, min_steps=4))
    with open_pipeline(Recipe(name="torch-fp32"), voice, audio_path=path) as pipeline:
        (spoken,) = speak(pipeline, [request])
    assert len(spoken.codes) >= 4 and np.isfinite(spoken.audio).all() and np.abs(spoken.audio).max() > 0


def test_two_workers_make_what_one_makes(work: Path, tmp_path: Path) -> None:
    train_nano(
        stages=["data", "dvae", "vocoder", "gpt"],
        out=tmp_path,
        calib=work / "calib",
        smoke=True,
        workers=2,
        say=lambda _: None,
    )
    for made in ("speech/domain-1/shard-0000.npz", "vocoder/polish/log.jsonl", "gpt/log.jsonl"):
        one, two = (folder / made for folder in (work / "work", tmp_path))
        if made.endswith("npz"):
            assert np.array_equal(np.load(one)["wave"], np.load(two)["wave"])
        else:
            first, second = ([json.loads(x) for x in p.read_text().splitlines()] for p in (one, two))
            for a, b in zip(first, second, strict=True):  # threads add in another order
                assert {**a, "wall_s": 0} == pytest.approx({**b, "wall_s": 0}, rel=0.02)


def test_tuning_goes_on_from_what_is_there_and_moves_both_networks(work: Path) -> None:
    tuned = torch.load(work / "work" / "tune" / "last.pt")["modules"]
    for network, stage in (("vocoder", "vocoder/polish"), ("decoder", "decoder")):
        before = torch.load(work / "work" / stage / "last.pt")["modules"]
        drift = max((before[key] - tuned[key]).abs().max().item() for key in before)
        assert 0 < drift < 1e-3, network  # two steps at a rate of 1e-4


def test_a_finished_stage_resumed_changes_nothing(work: Path) -> None:
    checkpoint = work / "work" / "decoder" / "last.pt"
    before = checkpoint.read_bytes()
    train_nano(
        stages=["data", "decoder"],
        out=work / "work",
        calib=work / "calib",
        smoke=True,
        resume=True,
        say=lambda _: None,
    )
    assert checkpoint.read_bytes() == before


def test_a_stage_without_its_predecessor_says_which_is_missing(work: Path, tmp_path) -> None:
    with pytest.raises(UserError, match="'data'"):
        train_nano(stages=["dvae"], out=tmp_path, calib=work / "calib", smoke=True)
    train_nano(stages=["data"], out=tmp_path, calib=work / "calib", smoke=True, say=lambda _: None)
    with pytest.raises(UserError, match="'dvae'"):
        train_nano(stages=["gpt"], out=tmp_path, calib=work / "calib", smoke=True)


def test_an_unknown_stage_is_refused_with_the_known_ones(tmp_path) -> None:
    with pytest.raises(UserError, match=f"'gtp' is unknown.*{', '.join(STAGES)}"):
        train_nano(stages=["gtp"], out=tmp_path)
