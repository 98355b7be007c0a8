"""The panel's scores of clips that conditions left, one family of metrics at a time for many conditions.

A scorer is loaded once for all of them. Clips that are equal to the last sample are scored once.
"""

from __future__ import annotations

import hashlib
from typing import Any

from labkit.faults.work import Scores, Work
from labkit.gate.order import load_forced, load_free
from labkit.quality.base import SAMPLE_RATE, Clip
from labkit.quality.panel import judge


def score(work: Work, family: str, counts: dict[str, int]) -> None:
    """Scores of one family for those conditions (or `free-<seed>`), each on its first so many clips; one file each."""
    clips = {name: _clips(work, name, count) for name, count in counts.items()}
    asked: dict[str, Clip] = {}
    for each in (clip for of_one in clips.values() for clip in of_one):
        asked.setdefault(_key(each), each)
    rows = judge(list(asked.values()), [family])
    width = len(rows) // len(asked)
    found = {key: rows[n * width : (n + 1) * width] for n, key in enumerate(asked)}
    for name, of_one in clips.items():
        scores: Scores = {}
        reasons: dict[str, str] = {}
        for clip in of_one:
            for row in found[_key(clip)]:
                scores.setdefault(row["metric"], {})[clip.item] = row["value"]
                if row["value"] is None:
                    reasons.setdefault(row["metric"], row["reason"])
        kept: dict[str, Any] = {"scores": scores, "reasons": reasons, "version": rows[0]["scorer_version"]}
        work.keep(name, family, kept)


def _clips(work: Work, name: str, count: int) -> list[Clip]:
    made = []
    for number, (text, audio) in enumerate(
        zip(work.plan.texts[:count], work.clips(name)[:count], strict=True)
    ):
        about: dict[str, Any] = {"text": text.text, "language": work.plan.language}
        if name.startswith("free-"):
            said = load_free(work.folder, number, int(name.removeprefix("free-")))
            made.append(Clip(text.id, 0, audio, codes=said.codes, ended=said.ended, **about))
            continue
        reference = load_forced(work.folder, number)
        made.append(
            Clip(text.id, 0, audio, codes=reference.codes, ended=True, reference_audio=reference.heard,
                 expected_s=len(reference.heard) / SAMPLE_RATE, **about)
        )  # fmt: skip
    return made


def _key(clip: Clip) -> str:
    free = clip.reference_audio is None
    return f"{clip.item} {free} {hashlib.sha256(clip.audio.tobytes()).hexdigest()}"
