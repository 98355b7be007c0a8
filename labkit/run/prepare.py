"""Child: what must exist before anything is measured. `python -m labkit.run.prepare FOLDER`

Artifacts are built and reference clips made here, in a process of their own: neither the memory of an export nor
the torch that it needs belongs to the process that is measured. Both come from caches after the first time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.run.clips import ReferenceSpeech, save_references
from labkit.run.tasks import BUILD, Job, Reporter, child_main


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """Build what the recipe needs, then make what the scenario and the judge need."""
    from labkit.voices import resolve_voice

    voice = resolve_voice(job.spec.voice)
    if not job.spec.recipe.pipeline:
        build(job, voice, reporter)
    if job.needs_reference:
        make_references(job, voice, reporter)


def build(job: Job, voice: Any, reporter: Reporter) -> None:
    """Export, quantize and compile; report what was built or found."""
    from labkit.artifacts import prepare

    reporter.stage(BUILD)
    artifacts = prepare(
        job.spec.recipe,
        voice,
        audio_path=job.spec.audio_path,
        progress=lambda line: reporter.stage(BUILD, line),
    )
    for artifact in artifacts.values():
        reporter.event(
            "artifact",
            record={
                "stage": artifact.stage,
                "engine": artifact.choice.engine,
                "precision": artifact.choice.precision,
                "size_bytes": artifact.size_bytes,
                "build_s": artifact.build_s,
                "cached": artifact.cached,
                "content_hash": artifact.content_hash,
                "details": dict(artifact.details),
            },
        )


def make_references(job: Job, voice: Any, reporter: Reporter) -> None:
    """What the reference recipe says for every text, into the job's folder."""
    from labkit.reference import reference

    reporter.stage("reference")
    clips = reference(
        voice,
        job.texts,
        seed=job.spec.seed,
        speaker=job.spec.speaker,
        audio_path=job.spec.audio_path,
        max_steps=job.spec.max_steps,
    )
    save_references(
        job,
        {
            clip.id: ReferenceSpeech(
                np.asarray(clip.codes, dtype=np.int64),
                None if clip.audio is None else np.asarray(clip.audio, dtype=np.float32),
            )
            for clip in clips
        },
    )


if __name__ == "__main__":
    child_main("prepare", work)
