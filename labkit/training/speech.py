"""The speech that the nano voice learns from: two corpora of clips on disk, spoken by the teacher and heard again.

`digits` are strings of digits, `domain` sentences of the whole lexicon. They lie outside the work folder, so that
every run of the same plans finds them; a folder that holds another plan's speech is refused. Silence, clipping and
odd durations are dropped while clips are made; what a recognizer did not hear right is left out on reading. Knows
plans and shards; knows nothing of the networks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from labkit.errors import UserError
from labkit.training import corpus
from labkit.training.align import Aligner, Boundaries, align_shard
from labkit.training.clip_check import Ears, check_corpus, found_right
from labkit.training.corpus import Clip, Item, shards, words_of
from labkit.training.data import SHARD_ITEMS, Speak, generate
from labkit.training.domain_plan import DomainRecipe, domain_plan
from labkit.training.domain_speech import as_written

Say = Callable[[str], None]

VERSIONS = {"digits": 1, "domain": 1}
"""Name the folders. Raise one when the same recipe gives other items or other speech: old shards are left alone."""
FIRST_INDEX = {"digits": 0, "domain": 100_000}
"""Clips of both corpora have indexes of their own once they are read."""


@dataclass(frozen=True)
class HeldOut:
    """Texts that training must not speak. `digits` and `domain` are judged at the end, `others` belong to the gate."""

    digits: tuple[str, ...]
    domain: tuple[str, ...]
    others: tuple[str, ...]
    other_digits: tuple[str, ...] = ()

    FILES = ("nano-heldout", "nano-domain-heldout", "nano-domain-eval", "nano-eval")

    @classmethod
    def from_calib(cls, folder: Path) -> HeldOut:
        """Read them from the project's corpora. UserError when the folder is not that of a checkout."""
        paths = [folder / f"{name}.txt" for name in cls.FILES]
        for path in paths:
            if not path.is_file():
                raise UserError(
                    f"{path} is missing: training needs the held-out texts. Run it in a checkout."
                )
        return cls(*(tuple(corpus.read_texts([path])) for path in paths))

    def words(self) -> set[tuple[str, ...]]:
        """Every held-out text as its words."""
        return {
            tuple(words_of(text)) for text in (*self.digits, *self.domain, *self.others, *self.other_digits)
        }


@dataclass(frozen=True)
class DigitsRecipe:
    """The digit corpus in numbers: `voices` are names of the teacher's."""

    voices: tuple[str, ...] = corpus.VOICES
    per_voice: int = 330
    valid: int = 40
    seed: int = 20


class Speech:
    """Both corpora under one folder."""

    def __init__(
        self,
        folder: Path,
        digits: DigitsRecipe,
        domain: DomainRecipe,
        held_out: HeldOut,
        *,
        checked: bool = True,
        say: Say = print,
    ) -> None:
        """`checked`: only clips that a recognizer heard right are given out."""
        self.folder, self.held_out, self.say = folder, held_out, say
        self._recipes, self._checked = (digits, domain), checked

    @cached_property
    def plans(self) -> dict[str, list[Item]]:
        digits, domain = self._recipes
        held = self.held_out
        return {
            "digits": corpus.plan(
                digits.voices, digits.per_voice, held.digits, held.other_digits, digits.valid, digits.seed
            ),
            "domain": domain_plan(domain, held.domain, (*held.others, *held.digits, *held.other_digits)),
        }

    def place(self, name: str) -> Path:
        return self.folder / f"{name}-{VERSIONS[name]}"

    def speak(self, speak: Speak, worker: int = 0, workers: int = 1) -> None:
        """Speak every shard that is missing; of `workers` processes, each takes its own shards."""
        for name, items in self.plans.items():
            _refuse_other_plans(items, self.place(name))
            self.say(f"data: {name}, {len(items)} items in {self.place(name)}")
            generate(items, self.place(name), as_written(speak), worker=worker, workers=workers, log=self.say)

    def check(self, ears: Ears, worker: int = 0, workers: int = 1) -> None:
        """Have recognizers hear every clip, once; workers share the shards as when they speak."""
        for name in self.plans:
            found = check_corpus(self.place(name), ears, worker=worker, workers=workers, say=self.say)
            self.say(f"check: {name}: {found.in_words()}")

    def clips(self, split: str, most: Mapping[str, int] | None = None) -> list[Clip]:
        """Clips of one split in plan order, digits first, at most so many of each corpus; UserError when none is there.

        Left out: what was not heard right or not heard yet (unless nothing is heard in this recipe), and of training
        the held-out sentences of either corpus.
        """
        held = self.held_out.words() if split == "train" else set()
        found: list[Clip] = []
        for name in self.plans:
            fit = (
                clip
                for clip in self._clips(name, split, self._checked)
                if len(clip.item.words) == 1 or tuple(clip.item.words) not in held
            )
            found += islice(fit, None if most is None else most[name])
        if not found:
            raise UserError(
                f"{self.folder} holds no {split!r} speech that was heard right; "
                "run the stages 'data' and 'check' first."
            )
        return found

    def by_corpus(self, clips: Sequence[Clip]) -> dict[str, list[Clip]]:
        """The clips of `clips()` under the name of the corpus each comes from."""
        return {
            name: [c for c in clips if (c.item.index >= FIRST_INDEX["domain"]) == (name == "domain")]
            for name in self.plans
        }

    def _clips(self, name: str, split: str, checked: bool) -> Iterator[Clip]:
        place, planned = self.place(name), len(self.plans[name])
        right = found_right(place) if checked else None
        for clip in corpus.read_corpus(place, split):
            index = clip.item.index
            if index < planned and (right is None or index in right):
                yield Clip(replace(clip.item, index=FIRST_INDEX[name] + index), clip.audio)

    def boundaries(self) -> dict[int, Boundaries]:
        """Word boundaries of every clip on disk that could be aligned, by the index that `clips` gives."""
        aligner = Aligner()
        return {
            FIRST_INDEX[name] + index: words
            for name in self.plans
            for path in shards(self.place(name))
            for index, words in align_shard(path, aligner).items()
        }

    def sources(self) -> dict[tuple[str, str], np.ndarray]:
        """The teacher's speech of held-out texts and single digits, by (text, the teacher's voice)."""
        found: dict[tuple[str, str], np.ndarray] = {}
        for name in self.plans:
            for clip in self._clips(name, "test", False):
                found[clip.item.text, clip.item.voice] = clip.audio
        for clip in self._clips("digits", "train", False):
            if len(clip.item.words) == 1:
                found.setdefault((clip.item.words[0], clip.item.voice), clip.audio)
        return found


def _refuse_other_plans(items: Sequence[Item], folder: Path) -> None:
    for path in shards(folder):
        first = int(path.stem.removeprefix("shard-")) * SHARD_ITEMS
        wanted = {item.index: item for item in items[first : first + SHARD_ITEMS]}
        with np.load(path) as stored:
            spoken = [Item(**item) for item in json.loads(str(stored["index"]))["items"]]
        strange = [item for item in spoken if wanted and wanted.get(item.index) != item]
        if strange:
            raise UserError(
                f"{path} says {strange[0].text!r}, which is not item {strange[0].index} of the plan; "
                "give this plan's speech a folder of its own with --speech."
            )
