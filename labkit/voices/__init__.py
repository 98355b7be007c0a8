"""Voices by name, found, made or fetched.

`nano` comes with the package; `random` and `random:SEED` are made once, at the published sizes, in the cache;
`chattts` (or `2Noise/ChatTTS`) comes from the hub; any folder in ChatTTS's asset layout is a voice, too. What a voice
is stands in `voice.py`. Loads no weights and imports no backend.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

from labkit.errors import CheckpointError, UserError
from labkit.model import layout
from labkit.model.checksums import verify
from labkit.model.config import FULL, VoiceConfig
from labkit.model.layout import VoiceCard
from labkit.voices.voice import Voice, cache_folder, hash_memory, open_voice, seed_of

__all__ = [
    "HUB_ID",
    "Voice",
    "cache_folder",
    "known_voices",
    "make_random_voice",
    "open_voice",
    "resolve_voice",
    "write_random_voice",
]

HUB_ID = "2Noise/ChatTTS"
_HUB_NAMES = ("chattts", HUB_ID.lower())
_RANDOM_FORMAT = 1  # raise when the same seed starts to mean other weights
_CHATTTS_LICENCE = "CC BY-NC 4.0"


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
        return _random(seed_of(key, "voice"), progress)
    if key in _HUB_NAMES:
        return _from_hub(progress)
    path = Path(name).expanduser()
    if name.strip() and path.is_dir():
        return open_voice(path)
    known = "; ".join(f"{known}: {what}" for known, what in known_voices().items())
    raise UserError(f"voice {name!r} is neither a known name nor a folder. Known: {known}.")


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
    verify(voice.folder, hash_memory())
    return replace(voice, card=replace(voice.card, licence=_CHATTTS_LICENCE))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0][:200]
