"""What the networks are taught with: so many copies of each kind of clip, and never a held-out text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest
import torch

from labkit.model.config import NANO
from labkit.model.dvae import Dvae
from labkit.model.gpt import Gpt
from labkit.training.align import spread_evenly
from labkit.training.corpus import Clip, Item
from labkit.training.material import HiddenStates, WordBoundaries, heard_clips, utterances
from labkit.training.recipe import NANO_RECIPE, SMOKE_RECIPE
from labkit.training.speech import HeldOut, Speech
from labkit.training.tones import Tones

TEXTS = {
    "one two three": "train",
    "two one": "train",
    "turn left [uv_break] and stop": "train",
    "turn right and go": "train",
    "go left": "valid",
}


@dataclass
class FewClips:
    """The part of `Speech` that is asked: four clips to learn from and one that is held out."""

    made: list[Clip]

    def clips(self, split: str) -> list[Clip]:
        return [clip for clip in self.made if clip.item.split == split]

    def by_corpus(self, clips: list[Clip]) -> dict[str, list[Clip]]:
        return {
            "digits": [c for c in clips if c.item.text in ("one two three", "two one")],
            "domain": [c for c in clips if c.item.text not in ("one two three", "two one")],
        }


@pytest.fixture(scope="module")
def speech() -> Speech:
    tones = Tones()
    clips = [
        Clip(Item(i, "a", split, text, 1.0), tones.speak(text.replace("[uv_break] ", ""), "a"))
        for i, (text, split) in enumerate(TEXTS.items())
    ]
    return cast("Speech", FewClips(clips))


@pytest.fixture(scope="module")
def dvae() -> Dvae:
    torch.manual_seed(0)
    return Dvae(NANO.dvae, NANO.audio).eval()


def _boundaries(clips: Sequence[Clip]) -> WordBoundaries:
    return {clip.item.index: spread_evenly(clip.audio, len(clip.item.words)) for clip in clips}


def test_digit_strings_sentences_and_pauses_are_copied_as_the_recipe_says(speech: Speech, dvae: Dvae) -> None:
    data = replace(
        SMOKE_RECIPE.data,
        copies={"digits": 1, "domain": 2},
        paused_copies=3,
        spliced={"digits": 5, "domain": 0},
    )
    held_out = HeldOut(("one two one", "two one one"), (), ())
    natural, spliced, valid = utterances(data, speech, held_out, dvae, _boundaries)
    assert Counter(u.text for u in natural) == {
        "one two three": 1, "two one": 1, "turn right and go": 2, "turn left [uv_break] and stop": 3,
    }  # fmt: skip
    assert [u.text for u in valid] == ["go left"]
    assert spliced
    assert not {"one two one", "two one one"} & {u.text for u in spliced}


def test_hidden_states_fit_the_mels_and_are_corrupted_for_training_only(speech: Speech, dvae: Dvae) -> None:
    torch.manual_seed(0)
    gpt = Gpt(NANO_RECIPE.config.gpt).eval()
    vector = torch.nn.functional.normalize(torch.randn(gpt.config.hidden), dim=0).numpy()
    trained, valid = zip(
        *(heard_clips(speech, dvae, HiddenStates(gpt, {"a": vector}, 0.5, seed)) for seed in (0, 1)),
        strict=True,
    )
    for clip in (*trained[0], *valid[0]):
        assert clip.hidden is not None
        assert clip.mels["real"].shape == clip.mels["dvae"].shape == (100, 2 * len(clip.hidden))
    assert torch.equal(valid[0][0].hidden, valid[1][0].hidden)
    assert any(not torch.equal(a.hidden, b.hidden) for a, b in zip(*trained, strict=True))
