"""Clips on their way from the measured process to the judge and the store: one `.npz` each in the job's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.results.arrays import load_arrays, save_arrays
from labkit.run.tasks import Job
from labkit.scenarios.base import Take

SPOKEN = "spoken"  # the first repetition of the scenario
REPLAYED = "replayed"  # the reference's codes through the recipe, for fidelity
REFERENCES = "references.npz"


@dataclass(frozen=True)
class ReferenceSpeech:
    """What the reference recipe said: codes [T, 4]; audio [N], or None for a voice that is never judged."""

    codes: NDArray[np.int64]
    audio: NDArray[np.float32] | None


@dataclass(frozen=True)
class KeptClip:
    """audio [N]; codes [T, 4] when the recipe tells them; `ended` is False when the maximum was hit."""

    item: str
    text: str
    audio: NDArray[np.float32]
    codes: NDArray[np.int64] | None
    ended: bool | None


def keep_clip(job: Job, kind: str, item: str, take: Take) -> None:
    """Write one clip; called between takes, never inside a timed region."""
    arrays: dict[str, NDArray[Any]] = {"audio": np.asarray(take.audio, dtype=np.float32)}
    if take.codes is not None:
        arrays["codes"] = np.asarray(take.codes, dtype=np.int64)
    if take.ended is not None:
        arrays["ended"] = np.asarray(take.ended)
    save_arrays(_file(job, kind, item), arrays)


def kept_clips(job: Job, kind: str) -> list[KeptClip]:
    """The clips of one kind that exist, in the order of the texts."""
    clips = []
    for text in job.texts:
        arrays = load_arrays(_file(job, kind, text.id))
        if arrays:
            ended = bool(arrays["ended"]) if "ended" in arrays else None
            clips.append(KeptClip(text.id, text.text, arrays["audio"], arrays.get("codes"), ended))
    return clips


def save_references(job: Job, clips: dict[str, ReferenceSpeech]) -> None:
    """Write what the reference said, by text id."""
    arrays: dict[str, NDArray[Any]] = {}
    for index, text in enumerate(job.texts):
        arrays[f"{index}.codes"] = clips[text.id].codes
        audio = clips[text.id].audio
        if audio is not None:
            arrays[f"{index}.audio"] = audio
    save_arrays(job.folder / REFERENCES, arrays)


def load_references(job: Job) -> dict[str, ReferenceSpeech]:
    """What the reference said, by text id; empty when none was made."""
    arrays = load_arrays(job.folder / REFERENCES)
    return {
        text.id: ReferenceSpeech(arrays[f"{index}.codes"], arrays.get(f"{index}.audio"))
        for index, text in enumerate(job.texts)
        if f"{index}.codes" in arrays
    }


def _file(job: Job, kind: str, item: str) -> Path:
    index = next(index for index, text in enumerate(job.texts) if text.id == item)
    return job.folder / f"{kind}-{index:04d}.npz"
