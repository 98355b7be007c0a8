"""Stages `data` and `check` of the domain corpus: the teacher speaks the plan, then a recognizer hears it.

The speech lies in the lab's cache and not in a work folder, so that every checkout of the same plan finds it; a
folder that holds another plan's speech is refused. `[uv_break]` becomes a real pause here: the parts are spoken one
by one, as if by commas, and joined with silence of a defined length. Knows nothing of the networks.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from labkit.errors import UserError
from labkit.training.corpus import SAMPLE_RATE, Clip, Item, level, read_corpus, shards, trim
from labkit.training.data import SHARD_ITEMS, Speak, generate
from labkit.training.domain_plan import PAUSE, DomainRecipe, planned
from labkit.training.lexicon import RESPELLED
from labkit.voices import cache_folder

STAGES = ("data", "check")
PLAN_VERSION = 1
"""Names the folder. Raise it when the same recipe gives other items or other speech: old shards are then left alone."""
PAUSE_S = 0.4
LEAD_S, TAIL_S = 0.04, 0.08  # of the silence that `trim` leaves around every part
HISS = 1e-4  # RMS of what fills a pause, -80 dB: rooms are never digitally silent


def domain_folder() -> Path:
    """Where the domain's speech is kept: `training/domain-1` in the lab's cache."""
    return cache_folder() / "training" / f"domain-{PLAN_VERSION}"


def respelled(text: str) -> str:
    """The text with some words as the teacher must read them to say them right."""
    return re.sub("|".join(rf"\b{word}\b" for word in RESPELLED), lambda found: RESPELLED[found[0]], text)


def as_written(speak: Speak) -> Speak:
    """`speak` for texts of the plan: words respelled, and PAUSE_S without speech where `[uv_break]` stands."""

    def paused(text: str, voice: str, tempo: float) -> np.ndarray:
        parts = [part.strip() for part in respelled(text).split(PAUSE)]
        if len(parts) == 1:
            return speak(parts[0], voice, tempo)
        rng = np.random.default_rng(zlib.crc32(text.encode()))
        filler = int((PAUSE_S - LEAD_S - TAIL_S) * SAMPLE_RATE)
        pieces: list[np.ndarray] = []
        for i, part in enumerate(parts):
            if pieces:
                pieces.append((HISS * rng.standard_normal(filler)).astype(np.float32))
            ending = "" if i == len(parts) - 1 else ","
            spoken = trim(speak(part + ending, voice, tempo), LEAD_S, TAIL_S)
            if len(spoken) == 0:
                return spoken  # a silent part spoils the clip, and the checks will say so
            pieces.append(level(spoken))
        return np.concatenate(pieces)

    return paused


def speak_domain(
    items: Sequence[Item], folder: Path, speak: Speak, *, say: Callable[[str], None] = print
) -> None:
    """Speak every shard that is missing in `folder`. UserError when it holds other items than the plan's."""
    _refuse_other_plans(items, folder)
    generate(items, folder, as_written(speak), log=say)


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
                "give this plan a folder of its own with --out."
            )


def run_stages(
    stages: Sequence[str],
    calib: Path,
    *,
    folder: Path | None = None,
    items: int | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """Stages of the domain corpus in order: `data` speaks, `check` hears. Both resume where they were stopped.

    `items` limits the work to that many first items of the plan, in whole shards: a balanced corpus as well. UserError
    for an unknown stage, `UnavailableError` when teacher or recognizer are not installed.
    """
    unknown = [stage for stage in stages if stage not in STAGES]
    if unknown:
        raise UserError(
            f"training stage {unknown[0]!r} does not exist for the domain corpus; its stages: {', '.join(STAGES)}."
        )
    folder = folder or domain_folder()
    if "data" in stages:
        from labkit.training.teacher import Teacher

        plan = planned(DomainRecipe(), calib)
        wanted = len(plan) if items is None else math.ceil(items / SHARD_ITEMS) * SHARD_ITEMS
        speak_domain(plan[:wanted], folder, Teacher().speak, say=say)
    if "check" in stages:
        from labkit.training.clip_check import check_corpus, whisper_ears

        say(check_corpus(folder, whisper_ears(), say=say).in_words())


def fit_clips(folder: Path, split: str | None = None) -> list[Clip]:
    """The clips that were heard and found right, in plan order; those not heard yet are left out."""
    from labkit.training.clip_check import found_right

    right = found_right(folder)
    return [clip for clip in read_corpus(folder, split) if clip.item.index in right]
