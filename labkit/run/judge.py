"""Child: quality of the clips that the measured process left. `python -m labkit.run.judge FOLDER`

One family of metrics after the other, each reported when it is done, so that a time limit costs the late ones only.
What was spoken freely is judged as speech; distances to the reference are taken on the same tokens alone.
"""

from __future__ import annotations

from labkit.quality.base import DEFAULT_PANEL, SAMPLE_RATE, Clip, scorer_class, scorer_names
from labkit.quality.panel import judge
from labkit.run.clips import REPLAYED, SPOKEN, ReferenceSpeech, kept_clips, load_references
from labkit.run.tasks import Job, Reporter, child_main


def work(job: Job, reporter: Reporter, spawned_at: float) -> None:
    """Judge every family on the clips it is meant for."""
    references = load_references(job)
    on_same_tokens = SPOKEN if job.spec.scenario == "replay" else REPLAYED
    for family in scorer_names(DEFAULT_PANEL):
        kind = on_same_tokens if "reference" in scorer_class(family).needs else SPOKEN
        reporter.stage("judge", family)
        clips = clips_of(job, kind, references, with_reference=kind == on_same_tokens)
        reporter.event("scores", rows=judge(clips, [family]))


def clips_of(
    job: Job, kind: str, references: dict[str, ReferenceSpeech], *, with_reference: bool
) -> list[Clip]:
    """Kept clips as the panel wants them; only clips of the reference's tokens carry its audio."""
    clips = []
    for kept in kept_clips(job, kind):
        reference = references.get(kept.item)
        clips.append(
            Clip(
                item=kept.item,
                repetition=0,
                audio=kept.audio,
                text=kept.text,
                language=job.language,
                reference_audio=reference.audio if reference is not None and with_reference else None,
                codes=kept.codes,
                ended=kept.ended,
                expected_s=seconds_of(reference),
            )
        )
    return clips


def seconds_of(reference: ReferenceSpeech | None) -> float | None:
    """How long the reference recipe took to say it, which is how long a good rendition takes."""
    if reference is None or reference.audio is None or not reference.audio.size:
        return None
    return reference.audio.size / SAMPLE_RATE


if __name__ == "__main__":
    child_main("judge", work)
