"""Probes on a tiny voice, the children working in this process: what is spoken, scored, kept and found again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labkit import voices
from labkit.errors import SpecError
from labkit.gate import judge, probe, probing
from labkit.gate.document import ProbeDocument, find_probe, probe_folder
from labkit.gate.measuring import anchors_of, items_of, scores_of
from labkit.gate.order import load_forced, load_free, load_heard
from labkit.gate.probing import Ask, check_recipe_for_gate
from labkit.gate.spec import GateSpec
from labkit.results.store import Store
from labkit.run import prepare
from labkit.run.process import Ended
from labkit.run.tasks import Job, Reporter, describe, events_file
from labkit.spec import Recipe, StageChoice
from labkit.voices import Voice

WORK = {"labkit.gate.probe": probe.work, "labkit.gate.judge": judge.work, "labkit.run.prepare": prepare.work}
WHOLE = Recipe(name="torch-fp32")
HURT = Recipe(name="hurt", gpt=StageChoice(options={"round_bits": 2, "round_blocks": "0"}))
DULL = Recipe(name="dull", vocoder=StageChoice(options={"round_bits": 2}))
SPEC = GateSpec(
    name="g", corpus="nano-smoke", texts=2, recipe=("hurt",), panel=("log_mel",), max_steps=6, seeds=(1, 2)
)


@pytest.fixture
def voice(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Voice:
    """The tiny voice, declared worth listening to, under every name."""
    good = dataclasses.replace(tiny_voice, card=dataclasses.replace(tiny_voice.card, for_quality=True))
    monkeypatch.setattr(voices, "resolve_voice", lambda name: good)
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    return good


@pytest.fixture
def children(voice: Voice, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Children's work in this process; returns the modules that were started."""
    started: list[str] = []

    def watch(module: str, folder: Path, *, log: Path, on_tick: Callable, **limits: object) -> Ended:
        started.append(module.rpartition(".")[2])
        log.write_text("")
        job, _ = Job.read(folder)
        reporter = Reporter(events_file(folder, started[-1]))
        try:
            WORK[module](job, reporter, 0.0)
        except Exception as error:
            reporter.event("failure", **describe(error))
            return Ended(1, None, 0.1)
        return Ended(0, None, 0.1)

    monkeypatch.setattr(probing, "watch", watch)
    return started


def go(ask: Ask, tmp_path: Path) -> ProbeDocument:
    return probing.probe(ask, Store(tmp_path / "results"), lambda line: None)


def means(document: ProbeDocument, tier: int) -> dict[str, float]:
    family = scores_of([document]).get(f"tier{tier}", {})
    return {
        metric: float(np.mean([value for values in items.values() for value in values if value is not None]))
        for metric, items in family.items()
    }


def test_the_reference_and_a_damaged_recipe_on_its_tokens(children: list[str], tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    first = go(Ask(SPEC, WHOLE, "forced"), tmp_path)
    assert (first.status, children) == ("ok", ["prepare", "probe", "judge"]), first.failure
    assert means(first, 1)["kl"] == 0 and means(first, 1)["flips"] == 0 and means(first, 2)["log_mel_db"] == 0
    assert means(first, 2)["duration_ratio"] == 1 and means(first, 2)["high_band_loss_db"] == 0
    anchors = anchors_of(store, first)
    assert list(anchors) == items_of(first) == ["nano-smoke-01", "nano-smoke-02"]

    hurt = go(Ask(SPEC, HURT, "forced", anchors, first), tmp_path)
    assert hurt.status == "ok", hurt.failure
    assert means(hurt, 1)["kl"] > 0 and means(hurt, 1)["hidden_error"] > 0.01
    assert means(hurt, 1)["heard_log_mel_db"] > 0
    assert means(hurt, 2)["log_mel_db"] == 0  # its acoustic path is whole
    assert set(hurt.by_codebook["nano-smoke-01"]) >= {"kl", "top1", "kl_steps"}
    assert len(hurt.by_codebook["nano-smoke-01"]["kl"]) == 4

    dull = go(Ask(SPEC, DULL, "forced", anchors, first), tmp_path)
    assert means(dull, 1)["kl"] == 0 and means(dull, 2)["log_mel_db"] > 0.01
    assert load_forced(probe_folder(store, first), 0).answer.logits.shape == (7, 4, 626)
    clips = load_heard(probe_folder(store, dull), 1)
    assert clips["heard"].shape == clips["acoustic"].shape == (512 * 6 - 256,)
    assert clips["free"].shape == clips["heard"].shape  # its tokens are the reference's, so it says the same
    with pytest.raises(KeyError):  # answers are kept of the reference alone
        load_forced(probe_folder(store, dull), 1)


def test_the_reference_is_held_to_its_fingerprint(children: list[str], tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    anchors = anchors_of(store, go(Ask(SPEC, WHOLE, "forced"), tmp_path))
    again = go(Ask(SPEC, WHOLE, "forced", anchors), tmp_path)
    assert children[3:] == ["probe", "judge"]  # no new tokens are made
    assert means(again, 1)["top1"] == 1 and means(again, 1)["hidden_error"] < 1e-3
    assert means(again, 2)["log_mel_db"] == 0 and "kl" not in means(again, 1)
    moved = {
        item: dataclasses.replace(each, hidden=each.hidden * np.float16(1.2))
        for item, each in anchors.items()
    }
    # the tokens are the same, so only another code or voice would make a new probe: ask the judge itself
    drifted = go(Ask(SPEC.model_copy(update={"threads": 2}), WHOLE, "forced", moved), tmp_path)
    assert means(drifted, 1)["hidden_error"] == pytest.approx(1 / 6, rel=0.05)


def test_free_speech_shares_its_noise(children: list[str], tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    first = go(Ask(SPEC, WHOLE, "free", seeds=(1, 2)), tmp_path)
    again = go(Ask(SPEC, Recipe(name="same"), "free", reference=first, seeds=(1, 2)), tmp_path)
    assert first.status == again.status == "ok", first.failure
    for number in (0, 1):
        for seed in (1, 2):
            mine, theirs = (load_free(probe_folder(store, each), number, seed) for each in (first, again))
            assert np.array_equal(mine.codes, theirs.codes)
    assert means(again, 3)["first_flip_steps"] == means(again, 3)["steps"] > 0
    one, other = (load_free(probe_folder(store, first), 0, seed).codes for seed in (1, 2))
    assert one.shape != other.shape or (one != other).any()
    assert "valid" in means(first, 3)


def test_a_probe_is_made_once_until_something_that_decides_it_changes(
    children: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Ask(SPEC, WHOLE, "free", seeds=(1,))
    first = go(ask, tmp_path)
    assert go(ask, tmp_path).probe_id == first.probe_id and len(children) == 2
    assert go(dataclasses.replace(ask, seeds=(2,)), tmp_path).probe_id != first.probe_id
    monkeypatch.setattr(probing, "code_hash", lambda: "changed")
    assert go(ask, tmp_path).probe_id != first.probe_id


def test_a_probe_whose_files_are_gone_or_damaged_is_made_again(children: list[str], tmp_path: Path) -> None:
    store, ask = Store(tmp_path / "results"), Ask(SPEC, WHOLE, "free", seeds=(1,))
    first = go(ask, tmp_path)
    (store.folder / "probes" / f"{first.probe_id}.json").write_text("{")
    assert find_probe(store, first.work_hash) is None
    assert go(ask, tmp_path).status == "ok" and len(children) == 4


def test_a_child_that_fails_is_told_about(
    children: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fall(*args: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setitem(WORK, "labkit.gate.probe", fall)
    found = go(Ask(SPEC, WHOLE, "free", seeds=(1,)), tmp_path)
    assert found.status == "oom" and found.failure is not None and "out of memory" in found.failure.message
    assert children == ["probe"] and find_probe(Store(tmp_path / "results"), found.work_hash) is None


def test_what_cannot_be_gated_is_refused(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "resolve_voice", lambda name: tiny_voice)
    with pytest.raises(SpecError, match="random weights"):
        check_recipe_for_gate(SPEC, WHOLE)
    with pytest.raises(SpecError, match="whole pipeline"):
        check_recipe_for_gate(SPEC, Recipe(name="up", pipeline="upstream"))


def test_the_code_hash_is_stable_and_short() -> None:
    probing.code_hash.cache_clear()
    first = probing.code_hash()
    probing.code_hash.cache_clear()
    assert probing.code_hash() == first and len(first) == 16
