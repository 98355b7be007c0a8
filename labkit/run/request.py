"""Everything a user can get wrong about a run, found before any work is done.

It knows names and answers: recipe, scenario, device, voice, speaker, corpus. An engine that this machine cannot
run is no error: the plan says so, and the run becomes a row with status `unavailable`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labkit.engines.base import Unavailable
from labkit.errors import SpecError, UnavailableError
from labkit.run.tasks import JobText
from labkit.scenarios import require_scenario
from labkit.spec import RunSpec, check_device


@dataclass(frozen=True)
class Plan:
    """A run that can be started, or that is known to be unavailable here."""

    spec: RunSpec
    voice: Any
    texts: tuple[JobText, ...]
    language: str
    corpus_hash: str
    unavailable: UnavailableError | None
    notes: tuple[str, ...]

    @property
    def judged(self) -> bool:
        """Quality is asked for, and the voice is one whose audio means something."""
        return self.spec.quality and bool(self.voice.for_quality)


def plan_run(spec: RunSpec) -> Plan:
    """Look up every name of the spec; raises the user's error that names the value and the remedy."""
    from labkit.artifacts import check_recipe
    from labkit.text.corpus import load_corpus
    from labkit.voices import resolve_voice

    if not isinstance(spec, RunSpec):
        raise SpecError(
            f"run takes a RunSpec, not {type(spec).__name__}: "
            "labkit.run(labkit.RunSpec(recipe=labkit.default_recipes()['torch-fp32']))."
        )
    require_scenario(spec.scenario)
    check_device(spec.device)
    unavailable, notes = _availability(spec)
    corpus = load_corpus(spec.corpus)
    voice = resolve_voice(spec.voice)
    check_recipe(spec.recipe, voice=voice, audio_path=spec.audio_path)
    texts = tuple(JobText(text.id, text.text) for text in corpus.texts[: spec.texts])
    _check_texts(texts, voice, voice.speaker(spec.speaker))
    return Plan(
        spec=spec,
        voice=voice,
        texts=texts,
        language=corpus.language,
        corpus_hash=corpus.content_hash,
        unavailable=unavailable,
        notes=notes,
    )


def _check_texts(texts: tuple[JobText, ...], voice: Any, speaker: Any) -> None:
    """Every text can be spoken by this voice; warns of words it was not taught."""
    from labkit.synthesis.request import Request, prepare

    for text in texts:
        prepare(voice, Request(text.text, speaker=speaker))


def _availability(spec: RunSpec) -> tuple[UnavailableError | None, tuple[str, ...]]:
    """What this machine lacks for the recipe, and what is unverified; a recipe nobody can run is a SpecError."""
    from labkit.pipeline import recipe_availability

    answer = recipe_availability(spec.recipe, spec.device)
    if isinstance(answer, Unavailable):
        return UnavailableError(answer.reason, answer.remedy), ()
    return None, (answer.note,) if answer.note else ()
