"""Three loaded stages, ready to speak: a recipe's artifacts prepared, then each loaded by its engine.

It knows engines and artifacts, and nothing of texts or sampling.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from labkit.artifacts import check_recipe, prepare
from labkit.engines.base import (
    Artifact,
    Availability,
    Available,
    CompilingStage,
    DecoderStage,
    GptStage,
    Stage,
    Unavailable,
    VocoderStage,
    get_engine,
    require_available,
)
from labkit.errors import SpecError, UnavailableError
from labkit.spec import AudioPath, Recipe, StageName

if TYPE_CHECKING:
    from labkit.voices import Voice


@dataclass
class Pipeline:
    """What `synthesis` speaks through. A context manager: leaving it closes the stages.

    build_s: seconds that making the artifacts took, now or in the run that made them; load_s: seconds of loading, in
    all and per stage, without those of compiling, which `figures` tells; notes: what is not yet verified about an
    engine here.
    """

    recipe: Recipe
    voice: Voice
    audio_path: AudioPath
    gpt: GptStage
    decoder: DecoderStage
    vocoder: VocoderStage
    artifacts: dict[StageName, Artifact]
    build_s: float
    load_s: float
    load_stage_s: dict[StageName, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def stages(self) -> dict[StageName, Stage]:
        """The stages by name, in signal order."""
        return {"gpt": self.gpt, "decoder": self.decoder, "vocoder": self.vocoder}

    def placement(self) -> dict[str, dict[str, int]]:
        """For each stage, how many nodes each provider or device runs."""
        return {name: stage.placement() for name, stage in self.stages().items()}

    def memory(self) -> dict[str, dict[str, int]]:
        """For each stage, the bytes it knows it holds."""
        return {name: stage.memory() for name, stage in self.stages().items()}

    def figures(self) -> dict[str, float]:
        """What stages that compile themselves counted, such as `gpt_compile_s` and `gpt_recompiles`."""
        return {
            f"{name}_{what}": value
            for name, stage in self.stages().items()
            if isinstance(stage, CompilingStage)
            for what, value in stage.figures().items()
        }

    def synchronize(self) -> None:
        """Wait for all queued device work."""
        for stage in self.stages().values():
            stage.synchronize()

    def close(self) -> None:
        """Free all stages."""
        for stage in self.stages().values():
            stage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()


def check_runnable(recipe: Recipe, device: str) -> tuple[str, ...]:
    """Refuse a recipe that cannot run on a device before any work; returns notes on what is unverified there.

    SpecError for a choice nobody knows, UnavailableError with reason and remedy for an engine this machine lacks.
    """
    check_recipe(recipe)
    engines = dict.fromkeys(choice.engine for choice in recipe.choices().values())
    notes = [require_available(engine, device).note for engine in engines]
    check_recipe(recipe, device)
    return tuple(note for note in notes if note)


def recipe_availability(recipe: Recipe, device: str) -> Availability:
    """Whether this machine can run a recipe, pipelines included; SpecError for a recipe that nobody can run."""
    if recipe.pipeline == "upstream":
        from labkit.upstream.environment import availability

        return availability(device)
    try:
        return Available("; ".join(check_runnable(recipe, device)))
    except UnavailableError as error:
        return Unavailable(error.reason, error.remedy)


def open_pipeline(
    recipe: Recipe,
    voice: Voice,
    *,
    device: str = "cpu",
    threads: int = 1,
    audio_path: AudioPath = "hidden",
    progress: Callable[[str], None] | None = None,
) -> Pipeline:
    """Prepare and load all three stages of a recipe. `progress` gets a line per step of making and loading."""
    if recipe.pipeline:
        raise SpecError(f"recipe {recipe.name!r} is a whole pipeline of its own and has no stages to open.")
    notes = check_runnable(recipe, device)
    artifacts = prepare(recipe, voice, audio_path=audio_path, progress=progress)
    loaded, seconds = load_stages(
        artifacts, device=device, threads=threads, audio_path=audio_path, progress=progress
    )
    return Pipeline(
        recipe=recipe,
        voice=voice,
        audio_path=audio_path,
        artifacts=artifacts,
        build_s=sum(artifact.build_s or 0.0 for artifact in artifacts.values()),
        load_s=sum(seconds.values()),
        load_stage_s=seconds,
        notes=notes,
        **loaded,
    )


def load_stages(
    artifacts: Mapping[StageName, Artifact],
    *,
    device: str = "cpu",
    threads: int = 1,
    audio_path: AudioPath = "hidden",
    progress: Callable[[str], None] | None = None,
) -> tuple[dict[StageName, Any], dict[StageName, float]]:
    """Load each artifact by its engine: the stages, and seconds of loading without those of compiling."""
    loaded: dict[StageName, Any] = {}
    seconds: dict[StageName, float] = {}
    try:
        for stage, artifact in artifacts.items():
            if progress:
                progress(f"loading {stage} ({artifact.choice.engine} {artifact.choice.precision})")
            started = time.perf_counter()
            engine = get_engine(artifact.choice.engine)
            loaded[stage] = engine.load(
                stage, artifact, device=device, threads=threads, audio_path=audio_path
            )
            seconds[stage] = time.perf_counter() - started
            if isinstance(loaded[stage], CompilingStage):
                seconds[stage] -= loaded[stage].figures()["compile_s"]
    except BaseException:
        for opened in loaded.values():
            opened.close()
        raise
    return loaded, seconds
