"""Conditions of a tiny voice: what each changes, what it leaves, and that nothing is made twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

from labkit import voices
from labkit.errors import SpecError
from labkit.faults import running
from labkit.faults.conditions import CONDITIONS, swap_last_books
from labkit.faults.findings import panel_scores, tier_scores
from labkit.faults.judging import score
from labkit.faults.speaking import speak_condition, speak_freely, speak_reference
from labkit.faults.work import Task, Work, carry_out
from labkit.gate.order import load_forced
from labkit.gate.spec import GateSpec
from labkit.voices import Voice

GATE = GateSpec(name="g", corpus="nano-smoke", texts=2, recipe=("ort-fp32",), max_steps=24)


@pytest.fixture
def work(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Work:
    """The tiny voice, declared worth listening to, under every name."""
    good = dataclasses.replace(tiny_voice, card=dataclasses.replace(tiny_voice.card, for_quality=True))
    monkeypatch.setattr(voices, "resolve_voice", lambda name: good)
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    return Work(tmp_path / "work", GATE, (1,))


def test_faults_change_what_they_are_made_of(work: Work) -> None:
    speak_reference(work)
    names = ("base", "block-int3", "heads-swapped", "decoder-scaled", "low-pass-4k", "tail-cut")
    for name in names:
        speak_condition(work, name)
    for family in ("validity", "log_mel"):
        score(work, family, dict.fromkeys(names, 2))
    mean = {
        name: {
            f"{tier} {metric}": float(np.mean([v for v in scores.values() if v is not None] or [np.nan]))
            for tier, metrics in tier_scores(work, name).items()
            for metric, scores in metrics.items()
        }
        for name in names
    }
    assert mean["base"]["tier1 kl"] == 0 and mean["base"]["tier2 log_mel_db"] == 0
    assert mean["block-int3"]["tier1 kl"] > 0 and mean["heads-swapped"]["tier1 kl"] > 0
    assert mean["heads-swapped"]["tier1 hidden_error"] == 0  # the head alone is wrong
    assert not any(key.startswith("tier2") for key in mean["block-int3"])
    assert (
        panel_scores(work, "block-int3")["log_mel_db"]["nano-smoke-01"] > 0
    )  # heard from its own hidden states
    assert mean["decoder-scaled"]["tier2 log_mel_db"] > 0 and "tier1 kl" not in mean["decoder-scaled"]
    assert mean["low-pass-4k"]["tier2 high_band_loss_db"] > 10
    assert np.isnan(mean["tail-cut"]["tier2 log_mel_db"])  # no number for another length
    again = load_forced(work.folder, 0)
    speak_reference(work)  # everything is there
    assert np.array_equal(load_forced(work.folder, 0).heard, again.heard)


def test_free_renditions_differ_by_seed_and_have_no_reference(work: Work) -> None:
    for seed in (1, 2):
        speak_freely(work, seed)
        score(work, "validity", {f"free-{seed}": 2})
    one, two = (work.clips(f"free-{seed}") for seed in (1, 2))
    assert len(one) == 2 and not np.array_equal(one[0], two[0])
    assert set(panel_scores(work, "free-1")["valid"]) == set(work.items)


@pytest.mark.parametrize("name", [n for n, each in CONDITIONS.items() if each.on_network is not None])
def test_a_changed_network_is_whole_again_afterwards(tiny_voice: Voice, name: str) -> None:
    from labkit.model import checkpoint

    condition = CONDITIONS[name]
    network = (checkpoint.load_gpt if condition.heard else checkpoint.load_decoder)(tiny_voice.folder)
    if condition.heard:
        del network.text_head
    before = {key: value.clone() for key, value in network.state_dict().items()}
    assert condition.on_network is not None
    with condition.on_network(network):
        changed = [key for key, value in network.state_dict().items() if not torch.equal(value, before[key])]
    assert changed and all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_the_last_two_heads_change_places() -> None:
    weight = torch.arange(8.0).view(8, 1)  # four heads of two codes
    found = swap_last_books(4, torch.nn.Linear(1, 8), weight, "code_head")
    assert found.flatten().tolist() == [0, 1, 2, 3, 6, 7, 4, 5]


def test_work_of_another_voice_or_size_lies_elsewhere(work: Work, tiny_voice: Voice) -> None:
    shorter = Work(work.root, GATE.model_copy(update={"texts": 1}), (1,))
    assert shorter.folder != work.folder and Work(work.root, GATE, (1, 2)).folder == work.folder


def test_tasks_are_told_and_a_failure_ends_them(work: Work) -> None:
    done: list[str] = []
    told: list[str] = []

    def fail(_: Work) -> None:
        raise OSError("disk")

    tasks = [Task("one", lambda _, what: done.append(what), ("a",)), Task("two", fail, ())]
    with pytest.raises(OSError, match="disk"):
        carry_out(work, [*tasks, Task("three", lambda _, what: done.append(what), ("c",))], 1, told.append)
    assert done == ["a"] and told == ["1/3 one", "2/3 two"]
    with pytest.raises(SpecError, match="jobs 0"):
        carry_out(work, tasks, 0, told.append)


def test_a_corpus_that_is_too_short_is_refused(work: Work, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has 4 sentences; 30 are needed"):
        running.find_faults(GATE, tmp_path / "faults")
