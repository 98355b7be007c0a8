"""The stages of the nano voice in order, each reading what the ones before it left in the work folder.

Work folder: `data/` shards and alignments, one folder per network with `last.pt` and `log.jsonl`, `asset/` the packed
voice. Any stage can be run by itself once its predecessors are there; a stage that finds them missing says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from labkit.errors import UnavailableError, UserError
from labkit.model.dvae import Decoder, Dvae
from labkit.model.gpt import Gpt
from labkit.model.vocoder import Vocoder
from labkit.training import corpus
from labkit.training.align import align_corpus, spread_evenly
from labkit.training.augment import Aligned, variants
from labkit.training.codes import Utterance, encode
from labkit.training.corpus import Clip
from labkit.training.data import SHARD_ITEMS, Speak, generate
from labkit.training.decoder import train_decoder
from labkit.training.dvae import mel_of, train_dvae
from labkit.training.gpt import speaker_vectors, train_gpt
from labkit.training.loop import load_module
from labkit.training.pack import pack
from labkit.training.recipe import Recipe
from labkit.training.splice import splice
from labkit.training.vocoder import train_vocoder

Say = Callable[[str], None]
M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class HeldOut:
    """Texts that training must not speak: `test` is judged at the end, `forbidden` belongs to others."""

    test: tuple[str, ...]
    forbidden: tuple[str, ...]

    @classmethod
    def from_calib(cls, folder: Path) -> HeldOut:
        """Read them from the project's corpora. UserError when the folder is not that of a checkout."""
        paths = folder / "nano-heldout.txt", folder / "nano-eval.txt"
        for path in paths:
            if not path.is_file():
                raise UserError(
                    f"{path} is missing: training needs the held-out texts. Run it in a checkout."
                )
        test, forbidden = (tuple(corpus.read_texts([path])) for path in paths)
        return cls(test, forbidden)


class NanoTraining:
    """One work folder and one recipe; a method per stage."""

    def __init__(
        self, recipe: Recipe, held_out: HeldOut, folder: Path, *, resume: bool, say: Say = print
    ) -> None:
        self.recipe, self.held_out, self.folder = recipe, held_out, folder
        self.resume, self.say = resume, say
        torch.set_num_threads(recipe.threads)

    # ------------------------------------------------------------------ stages

    def data(self, worker: int = 0, workers: int = 1) -> None:
        """Speak the corpus. Several workers may share the shards."""
        generate(self.items, self.folder / "data", self._speak, worker=worker, workers=workers, log=self.say)

    def dvae(self) -> None:
        recipe = self.recipe
        train_dvae(
            recipe.dvae, recipe.config, self.clips("train"), self.clips("valid"), self.folder / "dvae",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def vocoder(self) -> None:
        recipe = self.recipe
        train_vocoder(
            recipe.vocoder, recipe.config, self.trained_dvae(), self.clips("train"), self.clips("valid"),
            self.folder / "vocoder", resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def gpt(self) -> None:
        recipe = self.recipe
        natural, spliced, valid = self.utterances()
        self.say(f"gpt: {len(natural)} natural and {len(spliced)} spliced utterances")
        train_gpt(
            recipe.gpt, recipe.config, natural, spliced, valid, self.speakers, self.folder / "gpt",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def decoder(self) -> None:
        recipe, dvae = self.recipe, self.trained_dvae()
        pairs, valid = (
            [(encode(dvae, [(clip, None)])[0], mel_of(clip)) for clip in self.clips(split)]
            for split in ("train", "valid")
        )
        train_decoder(
            recipe.decoder, recipe.config, self.trained_gpt(), pairs, valid, self.speakers, self.folder / "decoder",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def pack(self) -> None:
        data = self.recipe.data
        named = {name: self.speakers[voice] for name, voice in zip(data.speakers, data.voices, strict=True)}
        config = self.recipe.config
        size = pack(
            self.folder / "asset", config, named, gpt=self.trained_gpt(), dvae=self.trained_dvae(),
            decoder=self._trained("decoder", Decoder(config.decoder, config.audio)),
            vocoder=self.trained_vocoder(),
        )  # fmt: skip
        self.say(f"pack: {self.folder / 'asset'}, {size / 1e6:.2f} MB")

    def evaluate(self, voice: Path | None = None, card: Path | None = None) -> None:
        """Judge a voice folder on the held-out texts: findings to `evaluation.json`, figures to screen and card."""
        from labkit.training.card import draw_curves, figure_table, write_figures
        from labkit.training.evaluate import evaluate

        findings = evaluate(
            voice or self.folder / "asset",
            self.held_out.test,
            self._source_speech(),
            self.folder / "evaluation.json",
            say=self.say,
        )
        self.say(figure_table(findings))
        if card is not None:
            write_figures(card, findings)
            draw_curves(self.folder, card.with_name("curves.png"))

    def _source_speech(self) -> dict[tuple[str, str], Clip]:
        """Held-out texts and single digits as the teacher says them, by (text, speaker); spoken now if need be."""
        data, folder = self.recipe.data, self.folder / "data"
        wanted = len(self.held_out.test) + data.valid + len(corpus.DIGITS) * len(data.voices)
        shards = math.ceil(wanted / SHARD_ITEMS)
        try:
            generate(self.items[: shards * SHARD_ITEMS], folder, self._speak, log=self.say)
        except UnavailableError as error:
            self.say(f"evaluate: no source speech to compare with. {error}")
        names = dict(zip(data.voices, data.speakers, strict=True))
        found: dict[tuple[str, str], Clip] = {}
        for clip in corpus.read_corpus(folder):
            item = clip.item
            if item.split == "test" or len(item.words) == 1:
                text = item.text if item.split == "test" else item.words[0]
                found.setdefault((text, names[item.voice]), clip)
        return found

    # ------------------------------------------------------------------ what the stages share

    @cached_property
    def items(self) -> list[corpus.Item]:
        data = self.recipe.data
        return corpus.plan(
            data.voices, data.per_voice, self.held_out.test, self.held_out.forbidden, data.valid, data.seed
        )

    @cached_property
    def speakers(self) -> dict[str, np.ndarray]:
        data = self.recipe.data
        return speaker_vectors(data.voices, self.recipe.config.gpt.hidden, data.speaker_seed)

    def clips(self, split: str) -> list[Clip]:
        """Clips of the planned items of one split; those still on disk from a larger plan are left out."""
        planned = len(self.items)
        found = [c for c in corpus.read_corpus(self.folder / "data", split) if c.item.index < planned]
        if not found:
            raise UserError(f"{self.folder / 'data'} holds no {split!r} speech; run the stage 'data' first.")
        return found

    def utterances(self) -> tuple[list[Utterance], list[Utterance], list[Utterance]]:
        """(natural, spliced, valid) as codes of the trained DVAE, with word starts."""
        data, dvae = self.recipe.data, self.trained_dvae()
        natural, valid = self.clips("train"), self.clips("valid")
        if self.recipe.teacher == "tones":
            boundaries = {c.item.index: spread_evenly(c.audio, len(c.item.words)) for c in (*natural, *valid)}
        else:
            boundaries = align_corpus(self.folder / "data")
        unspeakable = {tuple(c.item.words) for c in valid}
        unspeakable |= {tuple(corpus.words_of(t)) for t in (*self.held_out.test, *self.held_out.forbidden)}
        spliced = splice(natural, boundaries, unspeakable, data.spliced, data.splice_seed)

        def aligned(clips: list[Clip]) -> list[Aligned]:
            return [(clip, boundaries.get(clip.item.index)) for clip in clips]

        return (
            encode(dvae, variants(aligned(natural), data.copies, data.splice_seed)),
            encode(dvae, variants(spliced, 1, data.splice_seed)),
            encode(dvae, aligned(valid)),
        )

    def trained_dvae(self) -> Dvae:
        return self._trained("dvae", Dvae(self.recipe.config.dvae, self.recipe.config.audio))

    def trained_gpt(self) -> Gpt:
        return self._trained("gpt", Gpt(self.recipe.config.gpt))

    def trained_vocoder(self) -> Vocoder:
        """After the polish, when the recipe has one."""
        config = self.recipe.config
        stage = "vocoder/polish" if self.recipe.vocoder.polish.steps else "vocoder"
        return self._trained("vocoder", Vocoder(config.vocoder, config.audio), stage)

    def _trained(self, key: str, module: M, stage: str = "") -> M:
        path = self.folder / (stage or key) / "last.pt"
        if not path.exists():
            raise UserError(f"{path} is missing; run the stage {key!r} first.")
        return load_module(path, key, module)

    def _speak(self, text: str, voice: str, tempo: float) -> np.ndarray:
        """Have the teacher speak; it is loaded when it is first asked."""
        return self._teacher(text, voice, tempo)

    @cached_property
    def _teacher(self) -> Speak:
        if self.recipe.teacher == "tones":
            from labkit.training.tones import Tones

            return Tones().speak
        from labkit.training.teacher import Teacher

        return Teacher().speak
