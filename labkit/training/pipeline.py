"""The stages of the nano voice in order, each reading what the ones before it left.

The speech lies in a folder of its own (`speech.py`), the rest in the work folder: one folder per network with `last.pt`
and `log.jsonl`, `asset/` the packed voice. Any stage can be run by itself once its predecessors are there; a stage that
finds them missing says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from labkit.training.align import spread_evenly
from labkit.training.clip_check import two_ears
from labkit.training.codes import encode
from labkit.training.corpus import VOICES, Clip
from labkit.training.data import Speak
from labkit.training.decoder import train_decoder
from labkit.training.dvae import mel_of, train_dvae
from labkit.training.gpt import speaker_vectors, train_gpt
from labkit.training.loop import load_module
from labkit.training.material import HiddenStates, WordBoundaries, heard_clips, utterances
from labkit.training.pack import pack
from labkit.training.recipe import Recipe
from labkit.training.speech import HeldOut, Speech
from labkit.training.vocoder import train_vocoder, tune

Say = Callable[[str], None]
M = TypeVar("M", bound=nn.Module)


class NanoTraining:
    """One work folder and one recipe; a method per stage."""

    def __init__(
        self,
        recipe: Recipe,
        held_out: HeldOut,
        folder: Path,
        *,
        speech: Path,
        resume: bool,
        threads: int = 1,
        say: Say = print,
    ) -> None:
        self.recipe, self.held_out, self.folder = recipe, held_out, folder
        self.resume, self.say = resume, say
        self.speech = Speech(
            speech, recipe.data.digits, recipe.data.domain, held_out, checked=not self._is_mute, say=say
        )
        torch.set_num_threads(threads)

    # ------------------------------------------------------------------ stages

    def data(self, worker: int = 0, workers: int = 1) -> None:
        """Speak both corpora. Several workers may share the shards."""
        self.speech.speak(self._speak, worker, workers)

    def check(self, worker: int = 0, workers: int = 1) -> None:
        """Have recognizers hear them; tones are not heard."""
        if not self._is_mute:
            self.speech.check(two_ears(), worker, workers)

    def dvae(self) -> None:
        recipe = self.recipe
        train_dvae(
            recipe.dvae, recipe.config, self.speech.clips("train", recipe.dvae.clips), self.speech.clips("valid"),
            self.folder / "dvae", resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def vocoder(self) -> None:
        recipe = self.recipe
        train_vocoder(
            recipe.vocoder, recipe.config, *heard_clips(self.speech, self.trained_dvae()), self.folder / "vocoder",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def gpt(self) -> None:
        recipe = self.recipe
        natural, spliced, valid = utterances(
            recipe.data, self.speech, self.held_out, self.trained_dvae(), self._boundaries
        )
        self.say(f"gpt: {len(natural)} natural and {len(spliced)} spliced utterances")
        train_gpt(
            recipe.gpt, recipe.config, natural, spliced, valid, self.speakers, self.folder / "gpt",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def decoder(self) -> None:
        recipe, dvae = self.recipe, self.trained_dvae()
        pairs, valid = (
            [(encode(dvae, [(clip, None)])[0], mel_of(clip)) for clip in self.speech.clips(split)]
            for split in ("train", "valid")
        )
        train_decoder(
            recipe.decoder, recipe.config, self.trained_gpt(), pairs, valid, self.speakers, self.folder / "decoder",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def tune(self) -> None:
        recipe = self.recipe
        decoder = load_module(self._checkpoint("decoder"), "decoder", self._new_decoder())
        states = HiddenStates(
            self.trained_gpt(), self.speakers, recipe.decoder.corrupted, recipe.vocoder.seed
        )
        tune(
            recipe.vocoder, recipe.config, decoder, *heard_clips(self.speech, self.trained_dvae(), states),
            self._checkpoint("vocoder", "vocoder/polish"), self.folder / "tune",
            resume=self.resume, pace=recipe.pace, say=self.say,
        )  # fmt: skip

    def pack(self) -> None:
        data = self.recipe.data
        named = {name: self.speakers[voice] for name, voice in zip(data.speakers, VOICES, strict=True)}
        config = self.recipe.config
        size = pack(
            self.folder / "asset", config, named, gpt=self.trained_gpt(), dvae=self.trained_dvae(),
            decoder=self.trained_decoder(), vocoder=self.trained_vocoder(),
        )  # fmt: skip
        self.say(f"pack: {self.folder / 'asset'}, {size / 1e6:.2f} MB")

    def evaluate(self, voice: Path | None = None, card: Path | None = None) -> None:
        """Judge a voice folder on the held-out texts: findings to `evaluation.json`, figures to screen and card."""
        from labkit.training.card import draw_curves, figure_table, write_figures
        from labkit.training.evaluate import evaluate

        evaluation = evaluate(
            voice or self.folder / "asset",
            {"digits": self.held_out.digits, "domain": self.held_out.domain},
            self._source_speech(),
            self.folder / "evaluation.json",
            resume=self.resume,
            say=self.say,
        )
        self.say(figure_table(evaluation.findings))
        if card is not None:
            write_figures(card, evaluation)
            draw_curves(self.folder, card.with_name("curves.png"))

    def _source_speech(self) -> dict[tuple[str, str], np.ndarray]:
        """Held-out texts and single digits as the teacher says them, by (text, speaker); spoken now if need be."""
        try:
            self.data()
        except UnavailableError as error:
            self.say(f"evaluate: no source speech to compare with. {error}")
        names = dict(zip(VOICES, self.recipe.data.speakers, strict=True))
        return {(text, names[voice]): audio for (text, voice), audio in self.speech.sources().items()}

    # ------------------------------------------------------------------ what the stages share

    @property
    def _is_mute(self) -> bool:
        return self.recipe.teacher == "tones"

    @cached_property
    def speakers(self) -> dict[str, np.ndarray]:
        data = self.recipe.data
        return speaker_vectors(VOICES, self.recipe.config.gpt.hidden, data.speaker_seed)

    def _boundaries(self, clips: Sequence[Clip]) -> WordBoundaries:
        if self._is_mute:
            return {c.item.index: spread_evenly(c.audio, len(c.item.words)) for c in clips}
        return self.speech.boundaries()

    def trained_dvae(self) -> Dvae:
        return self._trained("dvae", Dvae(self.recipe.config.dvae, self.recipe.config.audio))

    def trained_gpt(self) -> Gpt:
        return self._trained("gpt", Gpt(self.recipe.config.gpt))

    def trained_decoder(self) -> Decoder:
        return load_module(self._checkpoint("tune"), "decoder", self._new_decoder())

    def trained_vocoder(self) -> Vocoder:
        config = self.recipe.config
        return load_module(self._checkpoint("tune"), "vocoder", Vocoder(config.vocoder, config.audio))

    def _new_decoder(self) -> Decoder:
        return Decoder(self.recipe.config.decoder, self.recipe.config.audio)

    def _trained(self, key: str, module: M) -> M:
        return load_module(self._checkpoint(key), key, module)

    def _checkpoint(self, stage: str, folder: str = "") -> Path:
        path = self.folder / (folder or stage) / "last.pt"
        if not path.exists():
            raise UserError(f"{path} is missing; run the stage {stage!r} first.")
        return path

    def _speak(self, text: str, voice: str, tempo: float) -> np.ndarray:
        """Have the teacher speak; it is loaded when it is first asked."""
        return self._teacher(text, voice, tempo)

    @cached_property
    def _teacher(self) -> Speak:
        if self._is_mute:
            from labkit.training.tones import Tones

            return Tones().speak
        from labkit.training.teacher import Teacher

        return Teacher().speak
