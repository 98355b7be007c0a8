"""Sweeps: a grid of runs, its lists being the axes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from labkit.spec.frozen import FrozenSpec
from labkit.spec.reading import load_model
from labkit.spec.recipes import Name, Recipe, find_recipe
from labkit.spec.runs import AudioPath, Limits, RunSpec, ScenarioName, Seed, Threads

_AXES = ("voice", "corpus", "recipe", "scenario", "device", "threads", "seed", "speaker", "audio_path")


class SweepSpec(FrozenSpec):
    """A grid of runs: lists are axes."""

    name: Name
    description: str = ""
    voice: tuple[str, ...] = ("nano",)
    corpus: tuple[str, ...] = ("nano-eval",)
    recipe: tuple[str, ...]
    scenario: tuple[ScenarioName, ...] = ("single",)
    device: tuple[str, ...] = ("cpu",)
    threads: tuple[Threads, ...] = (1,)
    seed: tuple[Seed, ...] = (0,)
    speaker: tuple[str | None, ...] = (None,)
    audio_path: tuple[AudioPath, ...] = ("hidden",)
    texts: int | None = Field(None, ge=1)
    repeats: int = Field(3, ge=1)
    warmups: int = Field(1, ge=0)
    max_steps: int = Field(2048, ge=1, le=4096)
    quality: bool = True
    keep_audio: bool = True
    baseline: str | None = None
    limits: Limits = Limits()

    @field_validator(*_AXES, mode="before")
    @classmethod
    def _axis(cls, value: Any) -> Any:
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not values:
            raise ValueError("an axis needs at least one value")
        if any(value in values[:i] for i, value in enumerate(values)):
            raise ValueError(f"an axis names a value twice: {list(values)}")
        return values

    @model_validator(mode="after")
    def _baseline_is_a_recipe(self) -> SweepSpec:
        if self.baseline is not None and self.baseline not in self.recipe:
            raise ValueError(f"baseline {self.baseline!r} is not among the recipes {list(self.recipe)}")
        return self

    def runs(self, recipes: Mapping[str, Recipe]) -> list[RunSpec]:
        """Expand the grid, recipes innermost so that neighbours in time are the ones compared."""
        axes = itertools.product(
            self.voice, self.corpus, self.scenario, self.device, self.threads, self.seed,
            self.speaker, self.audio_path, self.recipe,
        )  # fmt: skip
        return [
            RunSpec(
                recipe=find_recipe(recipe, recipes), voice=voice, corpus=corpus, scenario=scenario, device=device,
                threads=threads, seed=seed, speaker=speaker, audio_path=audio_path, texts=self.texts,
                repeats=self.repeats, warmups=self.warmups, max_steps=self.max_steps, quality=self.quality,
                keep_audio=self.keep_audio, limits=self.limits,
            )
            for voice, corpus, scenario, device, threads, seed, speaker, audio_path, recipe in axes
        ]  # fmt: skip


def load_sweep(file: Path | str, **replace: Any) -> SweepSpec:
    """Read one sweep from a YAML file; `replace` overrides its keys."""
    return load_model(SweepSpec, file, **replace)
