"""What the reference recipe (torch fp32) says for each text: the codes that `replay` feeds to every recipe, and the
audio that others are compared with.

Kept in `<cache>/references/`, one file per text, keyed by everything that decides it, so an interrupted run goes on
where it stopped. A voice of random weights never ends by itself and says nothing: for it the codes are seeded random
numbers of a fixed length, and there is no audio to compare with.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labkit.engines.base import FloatArray, IntArray
from labkit.errors import InvalidAudioError, LabError
from labkit.results.arrays import save_arrays
from labkit.spec import AudioPath, find_recipe, load_recipes

if TYPE_CHECKING:
    from labkit.synthesis.request import Prepared, Utterance
    from labkit.voices import Voice

RECIPE = "torch-fp32"
RANDOM_STEPS = 64
"""Length of random codes: 1.4 s of audio, long enough to time and short enough for the full size on one core."""

_FORMAT = 1  # raise when the same key starts to mean something else


class Text(Protocol):
    """A text and its id, such as a `CorpusText`."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class ReferenceClip:
    """codes: [T, 4]; hidden: [T, D] and audio: [N] float32, both None for a voice of random weights."""

    id: str
    text: str
    codes: IntArray
    hidden: FloatArray | None
    audio: FloatArray | None
    ended: bool


def reference(
    voice: Voice,
    corpus_texts: Sequence[Text],
    *,
    seed: int = 0,
    speaker: str | None = None,
    audio_path: AudioPath = "hidden",
    max_steps: int = 2048,
    progress: Callable[[str], None] | None = None,
) -> list[ReferenceClip]:
    """The reference clips of the texts, in order, from the cache or made now.

    `InvalidAudioError` when the reference itself says nothing for a text: then there is nothing to replay.
    """
    if not voice.for_quality:
        return [
            _random_clip(voice, text, seed, position, max_steps) for position, text in enumerate(corpus_texts)
        ]
    from labkit.synthesis import Request, prepare

    embedding = voice.speaker(speaker)
    rows = [prepare(voice, Request(text.text, embedding, seed)) for text in corpus_texts]
    folder = _folder()
    files = [folder / f"{_key(voice, row, audio_path, max_steps)}.npz" for row in rows]
    clips = [_read(file, text) for file, text in zip(files, corpus_texts, strict=True)]
    missing = [i for i, clip in enumerate(clips) if clip is None]
    if missing:
        _make(voice, [rows[i] for i in missing], [files[i] for i in missing], audio_path, max_steps, progress)
    made = [clip or _read(file, text) for clip, file, text in zip(clips, files, corpus_texts, strict=True)]
    return [_present(clip, file) for clip, file in zip(made, files, strict=True)]


def _make(
    voice: Voice,
    rows: Sequence[Prepared],
    files: Sequence[Path],
    audio_path: AudioPath,
    max_steps: int,
    progress: Callable[[str], None] | None,
) -> None:
    from labkit.pipeline import open_pipeline
    from labkit.synthesis import speak

    with open_pipeline(find_recipe(RECIPE, load_recipes()), voice, audio_path=audio_path) as pipeline:
        for number, (row, file) in enumerate(zip(rows, files, strict=True), 1):
            if progress is not None:
                progress(f"reference {number}/{len(rows)}: {row.text}")
            (utterance,) = speak(pipeline, [row], max_steps=max_steps)
            if len(utterance.codes) == 0 or "non_finite_audio" in utterance.flags:
                raise InvalidAudioError(
                    f"voice {voice.name!r}: {RECIPE} says nothing usable for {row.request.text!r} "
                    f"({', '.join(utterance.flags)}); try another seed or speaker."
                )
            _write(file, utterance)


def _random_clip(voice: Voice, text: Text, seed: int, position: int, max_steps: int) -> ReferenceClip:
    gpt = voice.config.gpt
    steps = min(RANDOM_STEPS, max_steps)
    generator = np.random.Generator(np.random.Philox(key=[seed, position]))
    codes = generator.integers(0, gpt.end_code, size=(steps, gpt.num_codebooks), dtype=np.int64)
    return ReferenceClip(text.id, text.text, codes, None, None, ended=True)


def _folder() -> Path:
    from labkit.voices import cache_folder

    folder = cache_folder() / "references"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(
            f"references: {folder} cannot be made ({error.strerror}); set LABKIT_CACHE."
        ) from error
    return folder


def _key(voice: Voice, row: Prepared, audio_path: str, max_steps: int) -> str:
    request = row.request
    parts = {
        "format": _FORMAT,
        "weights": voice.weights_hash,
        "ids": row.ids.tolist(),
        "speaker": None if request.speaker is None else request.speaker.to_string(),
        "seed": [request.seed, request.row],
        "sampling": asdict(request.sampling),
        "audio_path": audio_path,
        "max_steps": max_steps,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _write(file: Path, utterance: Utterance) -> None:
    try:
        save_arrays(
            file,
            {
                "codes": utterance.codes,
                "hidden": utterance.hidden,
                "audio": utterance.audio,
                "ended": np.asarray(utterance.ended),
            },
        )
    except OSError as error:
        raise LabError(
            f"references: {file} cannot be written ({error.strerror}); free space or set LABKIT_CACHE."
        ) from error


def _read(file: Path, text: Text) -> ReferenceClip | None:
    """The cached clip, or None when there is none or its file is damaged: then it is made again."""
    try:
        with np.load(file) as stored:
            return ReferenceClip(
                text.id, text.text, stored["codes"], stored["hidden"], stored["audio"], bool(stored["ended"])
            )
    except (FileNotFoundError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _present(clip: ReferenceClip | None, file: Path) -> ReferenceClip:
    if clip is None:
        raise LabError(
            f"references: {file} was written but cannot be read back; delete it and check the disk."
        )
    return clip
