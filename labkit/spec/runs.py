"""Runs: one recipe, voice, scenario, corpus, device and seed, with what identifies the work.

Whether the voice, corpus or device exists here is answered by those modules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from labkit.errors import SpecError
from labkit.spec.frozen import FrozenSpec
from labkit.spec.reading import validate
from labkit.spec.recipes import Recipe

AudioPath = Literal["hidden", "codes"]
ScenarioName = Literal["replay", "single", "stream", "batch", "long-text", "load", "soak"]
MAX_THREADS = 256  # thread pools of this many start anywhere; OpenMP crashes with tens of thousands
Threads = Annotated[int, Field(ge=1, le=MAX_THREADS)]
MAX_SEED = 2**63 - 1  # tables of runs hold signed 64 bits
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")


class Limits(FrozenSpec):
    """When a run is stopped from outside.

    `seconds` holds for each of its processes (prepare, measure, judge) and leaves out the time of building artifacts;
    `memory_gb` counts the measured process with its children.
    """

    seconds: float = Field(600.0, gt=0)
    memory_gb: float | None = Field(None, gt=0)


class RunSpec(FrozenSpec):
    """One run, complete: two equal RunSpecs do the same work."""

    recipe: Recipe
    voice: str = "nano"
    scenario: ScenarioName = "single"
    corpus: str = "nano-eval"
    texts: int | None = Field(None, ge=1, description="use only the first N texts of the corpus")
    device: str = "cpu"
    threads: Threads = 1
    seed: Seed = 0
    speaker: str | None = Field(None, description="speaker name; null takes the voice's first")
    audio_path: AudioPath = "hidden"
    repeats: int = Field(3, ge=1)
    warmups: int = Field(1, ge=0)
    max_steps: int = Field(2048, ge=1, le=4096)
    quality: bool = True
    keep_audio: bool = False
    limits: Limits = Limits()

    def work_hash(self) -> str:
        """Hash of the work alone: limits and kept audio do not change what is measured."""
        return self.model_copy(update={"limits": Limits(), "keep_audio": False}).content_hash()


def check_device(device: str) -> None:
    """Refuse a device that no engine can mean; whether it is there is the engine's answer."""
    if not _DEVICE.fullmatch(device):
        raise SpecError(f"device {device!r} is unknown; known devices: cpu, cuda, cuda:N.")


def parse_run(values: Mapping[str, Any], *, place: str) -> RunSpec:
    """Validate the plain values of one run (JSON or notebook parameters)."""
    return validate(RunSpec, dict(values), "", place)
