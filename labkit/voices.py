"""Voices by name: where their files are, what they can say, and what identifies them.

`nano` comes with the package; `random` and `random:SEED` are made once, at the published sizes, in the cache;
`chattts` (or `2Noise/ChatTTS`) comes from the hub; any folder in ChatTTS's asset layout is a voice, too. Loads no
weights and imports no backend.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import CheckpointError, SpeakerError, UserError
from labkit.model import layout
from labkit.model.checksums import HashMemory, combined_hash, verify
from labkit.model.config import FULL, VoiceConfig
from labkit.model.layout import VoiceCard
from labkit.model.tensorfile import TensorFile

if TYPE_CHECKING:
    from labkit.model.speaker import SpeakerEmbedding
    from labkit.text.tokenizer import Tokenizer

HUB_ID = "2Noise/ChatTTS"
_HUB_NAMES = ("chattts", HUB_ID.lower())
_RANDOM_FORMAT = 1  # raise when the same seed starts to mean other weights
_CHATTTS_LICENCE = "CC BY-NC 4.0"
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
        return combined_hash(self.folder, files, _hash_memory(), extra=repr(self.config))

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
                _seed(wanted, "speaker"), SpeakerStatistics.from_string(self.card.speaker_statistics)
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


def cache_folder() -> Path:
    """Where made and fetched things are kept: `LABKIT_CACHE`, else `~/.cache/labkit`."""
    return Path(os.environ.get("LABKIT_CACHE") or Path.home() / ".cache" / "labkit")


def known_voices() -> dict[str, str]:
    """Name -> what it is, for people to choose from."""
    return {
        "nano": "a small voice of ChatTTS's architecture that comes with the lab",
        "random": "the published sizes with seeded random weights (random:SEED): for speed only",
        "chattts": f"the real checkpoint, {HUB_ID} from the hub ({_CHATTTS_LICENCE})",
        "FOLDER": "any folder in ChatTTS's asset layout",
    }


def resolve_voice(name: str, progress: Callable[[str], None] | None = None) -> Voice:
    """Find a voice by name, or make or fetch it if need be; UserError names the known ones.

    `progress` gets one line per slow step.
    """
    key = name.strip().lower()
    if key == "nano":
        return _nano()
    if key == "random" or key.startswith("random:"):
        return _random(_seed(key, "voice"), progress)
    if key in _HUB_NAMES:
        return _from_hub(progress)
    path = Path(name).expanduser()
    if name.strip() and path.is_dir():
        return open_voice(path)
    known = "; ".join(f"{known}: {what}" for known, what in known_voices().items())
    raise UserError(f"voice {name!r} is neither a known name nor a folder. Known: {known}.")


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


def write_random_voice(
    folder: Path, seed: int = 0, config: VoiceConfig = FULL, progress: Callable[[str], None] | None = None
) -> Path:
    """`make_random_voice` for a folder that a user names: nothing there is written over, and no room is a UserError."""
    if (asset := folder / "asset").exists():
        raise UserError(f"{asset} is there already; name another folder, or delete it first.")
    try:
        return make_random_voice(folder, config, seed, progress)
    except OSError as error:
        raise UserError(
            f"a voice cannot be written into {folder}: {error.strerror or error}. It needs 1.1 GB; name a folder with "
            "room."
        ) from error


def make_random_voice(
    folder: Path, config: VoiceConfig = FULL, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Path:
    """Write a complete voice of random weights, at any size, and return its asset folder.

    The tokenizer is synthetic, too: right in size and kind, but its ids mean nothing to the real checkpoint.
    """
    import numpy as np

    from labkit.model.random_weights import write_random_weights
    from labkit.model.speaker import SpeakerStatistics, random_speaker
    from labkit.text.tokenizer import write_synthetic_tokenizer

    asset = folder / "asset"
    hidden = config.gpt.hidden
    statistics = SpeakerStatistics(np.ones(hidden, np.float16), np.zeros(hidden, np.float16))
    card = VoiceCard(
        name=f"random:{seed}",
        licence="none: random numbers",
        for_quality=False,
        speakers={f"random-{i}": random_speaker(i, statistics).to_string() for i in range(2)},
        speaker_statistics=statistics.to_string(),
        note="seeded random weights and a synthetic vocabulary: for speed and memory, never for quality",
    )
    write_synthetic_tokenizer(asset, config.gpt.num_text_tokens)
    write_random_weights(asset, config, seed, progress)
    layout.write_descriptions(asset, config, card)
    return asset


def _nano() -> Voice:
    folder = Path(str(resources.files("labkit"))) / "assets" / "nano"
    if not (folder / "asset" / layout.GPT_CONFIG).is_file():
        raise CheckpointError(
            f"{folder}: the nano voice is not in this installation; make it with 'labkit train nano'."
        )
    return open_voice(folder, "nano")


def _random(seed: int, progress: Callable[[str], None] | None) -> Voice:
    from filelock import FileLock

    voices = cache_folder() / "voices"
    folder = voices / f"random-{seed}-v{_RANDOM_FORMAT}"
    try:
        voices.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                if progress is not None:
                    progress(f"making {folder} (about 1.1 GB, once)")
                partial = folder.with_name(f"{folder.name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                make_random_voice(partial, FULL, seed, progress)
                partial.rename(folder)
    except OSError as error:
        raise UserError(
            f"voice 'random:{seed}' cannot be made in {voices}: {error.strerror or error}. "
            "It needs 1.1 GB; set LABKIT_CACHE to a folder with room."
        ) from error
    return open_voice(folder, f"random:{seed}")


def _from_hub(progress: Callable[[str], None] | None) -> Voice:
    from huggingface_hub import snapshot_download

    if progress is not None:
        progress(f"looking for {HUB_ID} (1.1 GB when not yet on this machine)")
    try:
        patterns = ["asset/*.json", "asset/*.safetensors", "asset/*/*.json", "asset/*/*.safetensors"]
        folder = Path(snapshot_download(HUB_ID, allow_patterns=patterns))
    except Exception as error:  # the client raises many kinds; every one means that the voice is not here
        raise UserError(
            f"voice 'chattts': {HUB_ID} could not be fetched ({type(error).__name__}: {_first_line(error)}). "
            "Give the folder of a downloaded copy as the voice instead."
        ) from error
    voice = open_voice(folder, "chattts")
    verify(voice.folder, _hash_memory())
    return replace(voice, card=replace(voice.card, licence=_CHATTTS_LICENCE))


def _hash_memory() -> HashMemory:
    return HashMemory(cache_folder() / "hashes.json")


def _seed(name: str, what: str) -> int:
    _, _, text = name.partition(":")
    if not text:
        return 0
    if not text.isdecimal():
        raise UserError(f"{what} {name!r}: {text!r} is not a seed; write random:SEED with a whole number.")
    return int(text)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
