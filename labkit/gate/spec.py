"""What a gate asks for: recipes, sentences, tiers and how often speed is measured; from YAML.

It knows names and numbers only. Which change matters is said by the margins (`labkit.compare`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, field_validator

from labkit.errors import SpecError
from labkit.reference import RECIPE as REFERENCE
from labkit.spec import AudioPath, FrozenSpec, Limits, Recipe, RunSpec, Seed, Threads, load_model
from labkit.spec.recipes import Name

Tier = Literal[0, 1, 2, 3]
TIERS: tuple[Tier, ...] = get_args(Tier)
AA_SEEDS = 1000  # the A/A arm's seeds are those of the gate and this: the same voice, other noise


class SpeedSpec(FrozenSpec):
    """Fresh processes that are timed for each recipe, in `replay`. No `head_processes`: speed is not gated."""

    base_processes: int = Field(10, ge=0)
    head_processes: int = Field(5, ge=0)
    texts: int = Field(4, ge=1)
    repeats: int = Field(3, ge=1)


class GateSpec(FrozenSpec):
    """One gate: every recipe through every tier on the same sentences.

    texts: the first N of the corpus; tier 3 takes as many. seeds: of the free-running speech; the reference's own
    tokens are spoken with `reference_seed`. panel: the metrics, families or panels that judge the clips.
    """

    name: Name
    description: str = ""
    voice: str = "nano"
    corpus: str = "nano-eval"
    texts: int | None = Field(None, ge=1)
    recipe: tuple[str, ...]
    tiers: tuple[Tier, ...] = TIERS
    seeds: tuple[Seed, ...] = (1, 2)
    reference_seed: Seed = 0
    device: str = "cpu"
    threads: Threads = 1
    speaker: str | None = None
    audio_path: AudioPath = "hidden"
    max_steps: int = Field(512, ge=1, le=4096)
    panel: tuple[str, ...] = ("default",)
    speed: SpeedSpec = SpeedSpec()
    limits: Limits = Limits()

    @field_validator("recipe", "tiers", "seeds", "panel", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not values or len(set(values)) < len(values):
            raise ValueError(f"one or more different values are needed, not {list(values)}")
        return values

    @field_validator("recipe")
    @classmethod
    def _reference_first(cls, recipes: tuple[str, ...]) -> tuple[str, ...]:
        """The others are compared with the reference, so it always speaks, and first."""
        return (REFERENCE, *(name for name in recipes if name != REFERENCE))

    def run_spec(self, recipe: Recipe, **changes: Any) -> RunSpec:
        """The run that one recipe's part of this gate is, as the children of a run understand it."""
        values: dict[str, Any] = {
            "recipe": recipe, "voice": self.voice, "scenario": "replay", "corpus": self.corpus, "texts": self.texts,
            "device": self.device, "threads": self.threads, "seed": self.reference_seed, "speaker": self.speaker,
            "audio_path": self.audio_path, "max_steps": self.max_steps, "limits": self.limits,
        }  # fmt: skip
        return RunSpec(**{**values, **changes})


def load_gate(file: Path | str, **replace: Any) -> GateSpec:
    """Read one gate from a YAML file; `replace` overrides its keys. `SpecError` names the place and the key."""
    return load_model(GateSpec, file, **replace)


def parse_tiers(text: str) -> tuple[Tier, ...]:
    """`0-2`, `1,3` or `2` as tiers; `SpecError` for anything else."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-3])(?:-([0-3]))?\s*", part)
        if not match or int(match[2] or 3) < int(match[1]):
            raise SpecError(f"tiers {text!r}: write 0-2, 1,3 or one of {', '.join(map(str, TIERS))}.")
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(tier for tier in TIERS if tier in found)
