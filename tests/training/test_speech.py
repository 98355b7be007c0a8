"""Shards resume, speech of another plan is refused, and only what was heard right and is not held out is given out."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from labkit.errors import UserError
from labkit.training.corpus import Item, read_corpus
from labkit.training.domain_plan import DomainRecipe, domain_plan
from labkit.training.recipe import SMOKE_RECIPE
from labkit.training.speech import FIRST_INDEX, VERSIONS, HeldOut, Speech
from labkit.training.tones import Tones

PLAN_FINGERPRINT = "b14944c572a33971779f2986f9097eb48d958ba1a8bcfe457037d1f1d61923f3"
HELD_OUT = HeldOut(("one two three", "four four"), ("close the window",), ("turn left",), ("six six",))


def speech(folder: Path, held_out: HeldOut = HELD_OUT, *, checked: bool = True) -> Speech:
    data = SMOKE_RECIPE.data
    return Speech(folder, data.digits, data.domain, held_out, checked=checked, say=lambda _: None)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("speech")
    speech(folder).speak(Tones().speak)
    return folder


def echo(audio: np.ndarray, text: str) -> str:
    """A recognizer that hears everything right but the word "two"."""
    return text.replace("two", "tree")


def test_speech_on_disk_is_not_spoken_again_and_that_of_another_plan_is_refused(spoken: Path) -> None:
    def fail(text: str, voice: str, tempo: float) -> np.ndarray:
        raise AssertionError("spoken twice")

    speech(spoken).speak(fail)
    other = replace(HELD_OUT, digits=("one two four", "four four"))
    with pytest.raises(UserError, match=r"says 'one two three', which is not item 0 of the plan.*--speech"):
        speech(spoken, other).speak(fail)


def test_clips_of_both_corpora_have_indexes_of_their_own(spoken: Path) -> None:
    indexes = [clip.item.index for clip in speech(spoken, checked=False).clips("train")]
    assert indexes == sorted(set(indexes))
    assert any(i < FIRST_INDEX["domain"] for i in indexes) and indexes[-1] >= FIRST_INDEX["domain"]


def test_the_first_of_each_corpus_can_be_asked_for(spoken: Path) -> None:
    few = speech(spoken, checked=False).clips("train", {"digits": 5, "domain": 3})
    assert [clip.item.index >= FIRST_INDEX["domain"] for clip in few] == [False] * 5 + [True] * 3


def test_only_clips_that_were_heard_right_are_given_out(spoken: Path, tmp_path: Path) -> None:
    for source in spoken.rglob("*.npz"):
        target = tmp_path / source.relative_to(spoken)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(source.read_bytes())
    corpora = speech(tmp_path)
    with pytest.raises(UserError, match="'data' and 'check'"):
        corpora.clips("train")
    corpora.check([echo])
    words = [clip.item.words for clip in corpora.clips("train")]
    assert ["two"] not in words and ["three"] in words
    assert len(words) < len(speech(tmp_path, checked=False).clips("train"))


def test_a_held_out_sentence_that_was_spoken_all_the_same_is_not_trained_on(spoken: Path) -> None:
    clips = speech(spoken, checked=False).clips("train")
    said = next(clip.item.words for clip in clips if len(clip.item.words) > 2)
    later = replace(HELD_OUT, others=(" ".join(said),))
    corpora = speech(spoken, checked=False)
    corpora.held_out = later
    assert said not in [clip.item.words for clip in corpora.clips("train")]


def test_sources_are_held_out_texts_and_single_digits(spoken: Path) -> None:
    texts = {text for text, _ in speech(spoken).sources()}
    assert {"one two three", "four four", "close the window", "zero", "nine"} <= texts
    assert len([clip for clip in read_corpus(spoken / "domain-1", "test")]) == 1


def test_held_out_texts_come_from_the_project_s_lists(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="held-out"):
        HeldOut.from_calib(tmp_path)
    for name in HeldOut.FILES:
        (tmp_path / f"{name}.txt").write_text(f"# note\none {name.split('-')[-1]}\n")
    held = HeldOut.from_calib(tmp_path)
    assert (held.digits, held.other_digits) == (("one heldout",), ("one eval",))


def test_the_plan_is_the_one_its_version_names() -> None:
    """When this fails, raise the version: speech in the caches of others belongs to the old plan."""
    plan: list[Item] = domain_plan(DomainRecipe(items=192), ["close the window"], ["turn left"])
    text = json.dumps([asdict(item) for item in plan])
    assert (VERSIONS["domain"], hashlib.sha256(text.encode()).hexdigest()) == (1, PLAN_FINGERPRINT)
