"""A voice: where its files are, what it can say, and what identifies it. Loads no weights and imports no backend."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import CheckpointError, SpeakerError, UserError
from labkit.model import layout
from labkit.model.checksums import HashMemory, combined_hash
from labkit.model.config import VoiceConfig
from labkit.model.layout import VoiceCard
from labkit.model.tensorfile import TensorFile

if TYPE_CHECKING:
    from labkit.model.speaker import SpeakerEmbedding
    from labkit.text.tokenizer import Tokenizer

_SHOWN = 60  # characters of a speaker string in a message


@dataclass(frozen=True)
class Voice:
    """A resolved voice. `folder` is its asset folder; the description is `card`, and the sizes are `config`."""

    name: str
    folder: Path
    config: VoiceConfig
    card: VoiceCard

    @property
    def licence(self) -> str:
        return self.card.licence

    @property
    def for_quality(self) -> bool:
        """False when the weights are random: then only speed and memory may be measured."""
        return self.card.for_quality

    @property
    def domain_words(self) -> tuple[str, ...] | None:
        """The words that the voice was taught, or None when it speaks open text."""
        return self.card.domain_words

    @cached_property
    def weights_hash(self) -> str:
        """SHA-256 over everything that decides what the voice says: weights, sizes and tokenizer."""
        files = (*layout.WEIGHT_FILES, layout.TOKENIZER_FILES[0])
        return combined_hash(self.folder, files, hash_memory(), extra=repr(self.config))

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from labkit.text.tokenizer import Tokenizer

        tokenizer = Tokenizer.from_folder(self.folder)
        if len(tokenizer) > self.config.gpt.num_text_tokens:
            raise CheckpointError(
                f"{self.folder}: the tokenizer has {len(tokenizer)} tokens but the network embeds only "
                f"{self.config.gpt.num_text_tokens}; they belong to different voices."
            )
        return tokenizer

    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def speakers(self) -> dict[str, SpeakerEmbedding]:
        """The voice's named speakers, the default one first."""
        from labkit.model.speaker import SpeakerEmbedding

        hidden = self.config.gpt.hidden
        return {name: SpeakerEmbedding.from_string(text, hidden) for name, text in self.card.speakers.items()}

    def speaker(self, wanted: str | None = None) -> SpeakerEmbedding | None:
        """A speaker by name, by speaker string, or drawn as `random:SEED`.

        None asks for the default: the first named speaker, or no speaker at all when the voice names none.
        """
        from labkit.model.speaker import SpeakerEmbedding, SpeakerStatistics, random_speaker

        named = self.card.speakers
        if wanted is None:
            return next(iter(self.speakers().values()), None)
        if wanted in named:
            return self.speakers()[wanted]
        if wanted.split(":")[0] == "random":
            if self.card.speaker_statistics is None:
                raise SpeakerError(
                    f"speaker {wanted!r}: voice {self.name!r} has no speaker statistics to draw from; {self._choices()}"
                )
            return random_speaker(
                seed_of(wanted, "speaker"), SpeakerStatistics.from_string(self.card.speaker_statistics)
            )
        if wanted.isascii():
            shown = wanted if len(wanted) <= _SHOWN else f"{wanted[:_SHOWN]}…"
            raise SpeakerError(f"speaker {shown!r} is unknown to voice {self.name!r}; {self._choices()}")
        return SpeakerEmbedding.from_string(wanted, self.config.gpt.hidden)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Words of a text that the voice cannot say: outside its vocabulary, or outside its domain if it has one."""
        if self.domain_words is None:
            return self.tokenizer().unknown_words(text)
        taught = set(self.domain_words)
        words = self.tokenizer().words(text)
        return tuple(dict.fromkeys(word for word, known in words if not known or word.lower() not in taught))

    def essentials(self) -> dict[str, str]:
        """What was measured of the voice, in words by arm, from the file beside its card; empty when there is none."""
        file = self.folder.parent / layout.ESSENTIALS
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else {}

    def _choices(self) -> str:
        names = ", ".join(self.card.speakers) or "none"
        return f"its named speakers: {names}; a speaker string works as well."


def open_voice(folder: Path, name: str | None = None) -> Voice:
    """The voice in a folder (the asset folder, or the one above it); `CheckpointError` for a file that is not whole."""
    asset = layout.asset_folder(folder)
    card = layout.read_card(asset) or VoiceCard(name=name or folder.resolve().name, licence="unknown")
    missing = [
        file for file in (*layout.WEIGHT_FILES, layout.TOKENIZER_FILES[0]) if not (asset / file).is_file()
    ]
    if missing:
        raise CheckpointError(f"{asset}: {', '.join(missing)} missing.{layout.pickled_hint(asset)}")
    for file in layout.WEIGHT_FILES:  # headers alone: whether their shapes fit is seen when they are loaded
        TensorFile(asset / file)
    return Voice(name or card.name, asset, layout.read_config(asset), card)


def cache_folder() -> Path:
    """Where made and fetched things are kept: `LABKIT_CACHE`, else `~/.cache/labkit`."""
    return Path(os.environ.get("LABKIT_CACHE") or Path.home() / ".cache" / "labkit")


def hash_memory() -> HashMemory:
    """Hashes of files that were read before, so that an unchanged one is not read again."""
    return HashMemory(cache_folder() / "hashes.json")


def seed_of(name: str, what: str) -> int:
    """The number of `random:SEED`, 0 when it is left out."""
    _, _, text = name.partition(":")
    if not text:
        return 0
    if not text.isdecimal():
        raise UserError(f"{what} {name!r}: {text!r} is not a seed; write random:SEED with a whole number.")
    return int(text)
