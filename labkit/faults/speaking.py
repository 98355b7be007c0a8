"""A condition says the reference's tokens: figures of tier 1, and one clip for each sentence.

Worker functions: each makes one part of a `Work` and leaves it as a file. They are the gate's own steps, with a change
of the weights or of the clip in between.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.faults.conditions import CONDITIONS, Condition
from labkit.faults.work import Scores, Work
from labkit.gate.order import ForcedClip, FreeClip, load_forced, load_free, save_forced, save_free
from labkit.gate.spec import REFERENCE
from labkit.spec import find_recipe, load_recipes

if TYPE_CHECKING:
    from labkit.pipeline import Pipeline

TIER1 = "tier1"


def speak_reference(work: Work) -> None:
    """The reference draws its tokens, and answers when they are fed back: `forced-*.npz` in the work's folder."""
    from labkit.errors import InvalidAudioError
    from labkit.gate.probe import force, listen
    from labkit.synthesis import speak

    missing = [n for n in range(len(work.items)) if not (work.folder / f"forced-{n:04d}.npz").exists()]
    if not missing:
        return
    with _open(work) as stages:
        for number in missing:
            row = _prepared(work, stages, number)
            said = speak(stages, [row], max_steps=work.gate.max_steps)[0]
            if not len(said.codes):
                raise InvalidAudioError(
                    f"sentence {work.items[number]!r}: the voice says nothing; use another seed."
                )
            answer = force(stages, row, said.codes)
            heard = listen(stages, answer, said.codes)
            save_forced(work.folder, number, ForcedClip(answer, said.codes, heard, heard, said.audio))


def speak_condition(work: Work, name: str) -> None:
    """Clips of one condition, and its figures of tier 1 where its GPT, or what runs it, is another."""
    condition = CONDITIONS[name]
    references = [load_forced(work.folder, number) for number in range(len(work.items))]
    if condition.on_clip is not None:
        work.keep_clips(
            name, [condition.on_clip(clip.heard, number) for number, clip in enumerate(references)]
        )
        return
    clips, figures = [], []
    with _open(work, condition) as stages, _changed(condition, stages):
        for number, reference in enumerate(references):
            clip, found = _say(work, condition, stages, number, reference)
            clips.append(clip)
            if found is not None:
                figures.append(found)
    if figures:
        metrics: Scores = {
            metric: {item: each[metric] for item, each in zip(work.items, figures, strict=True)}
            for metric in figures[0]
        }
        work.keep(name, TIER1, metrics)
    work.keep_clips(name, clips)


def speak_freely(work: Work, seed: int) -> None:
    """Every sentence with a seed of its own noise, as tier 3 does: `free-*.npz`."""
    from labkit.model.sampling import SamplingParams
    from labkit.synthesis import Request, speak

    with _open(work) as stages:
        speaker, sampling = (
            stages.voice.speaker(work.gate.speaker),
            SamplingParams(max_steps=work.gate.max_steps),
        )
        for number, text in enumerate(work.plan.texts):
            request = Request(text.text, speaker, seed, row=number, sampling=sampling)
            (said,) = speak(stages, [request], max_steps=work.gate.max_steps)
            save_free(work.folder, number, seed, FreeClip(said.codes, said.audio, said.ended, said.flags))
    work.keep_clips(f"free-{seed}", [load_free(work.folder, n, seed).audio for n in range(len(work.items))])


def _say(
    work: Work, condition: Condition, stages: Pipeline, number: int, reference: ForcedClip
) -> tuple[Any, dict[str, float] | None]:
    """One sentence's clip [N], and its figures; none of a changed decoder, which decides no tokens."""
    from labkit.gate.figures import compare_forced
    from labkit.gate.probe import force, listen
    from labkit.model.sampling import SamplingParams

    codes = reference.codes
    if condition.place == "decoder":
        return listen(stages, reference.answer, codes), None
    answer = force(stages, _prepared(work, stages, number), codes)
    params = SamplingParams(max_steps=work.gate.max_steps)
    figures = compare_forced(reference.answer, answer, codes, params=params, seed=work.gate.reference_seed)
    return listen(stages, answer if condition.heard else reference.answer, codes), figures.values


def _changed(condition: Condition, stages: Pipeline) -> AbstractContextManager[Any]:
    if condition.on_network is None:
        return nullcontext()
    stage: Any = stages.gpt if condition.place == "gpt" else stages.decoder
    return condition.on_network(stage.network)


def _prepared(work: Work, stages: Pipeline, number: int) -> Any:
    from labkit.synthesis import Request, prepare

    speaker = stages.voice.speaker(work.gate.speaker)
    return prepare(stages.voice, Request(work.plan.texts[number].text, speaker, work.gate.reference_seed))


@contextmanager
def _open(work: Work, condition: Condition | None = None) -> Iterator[Pipeline]:
    from labkit.pipeline import open_pipeline

    recipe = find_recipe((condition and condition.recipe) or REFERENCE, load_recipes())
    threads = condition.threads if condition else 1
    with _empty_cache() if condition and condition.afresh else nullcontext():
        pipeline = open_pipeline(
            recipe, work.plan.voice, device=work.gate.device, threads=threads, audio_path=work.gate.audio_path
        )
    with pipeline:
        yield pipeline


@contextmanager
def _empty_cache() -> Iterator[None]:
    """Artifacts are made in a folder of their own, and gone afterwards: a loaded stage keeps what it mapped."""
    before = os.environ.get("LABKIT_CACHE")
    with tempfile.TemporaryDirectory(prefix="labkit-afresh-") as folder:
        os.environ["LABKIT_CACHE"] = str(Path(folder))
        try:
            yield
        finally:
            if before is None:
                del os.environ["LABKIT_CACHE"]
            else:
                os.environ["LABKIT_CACHE"] = before
