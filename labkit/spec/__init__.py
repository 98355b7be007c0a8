"""What is asked for: recipes, runs and sweeps as frozen objects, their hashes, YAML in and out.

It knows names and numbers only. Whether an engine, voice or corpus exists here is answered by those modules.
"""

from __future__ import annotations

from labkit.spec.frozen import FrozenSpec
from labkit.spec.reading import load_model, nearest
from labkit.spec.recipes import (
    STAGES,
    Option,
    Precision,
    Recipe,
    StageChoice,
    StageName,
    default_recipes,
    find_recipe,
    load_recipes,
    parse_recipes,
    read_recipes,
)
from labkit.spec.runs import (
    MAX_SEED,
    MAX_THREADS,
    AudioPath,
    Limits,
    RunSpec,
    ScenarioName,
    Seed,
    Threads,
    check_device,
    parse_run,
)
from labkit.spec.sweeps import SweepSpec, load_sweep

__all__ = [
    "MAX_SEED",
    "MAX_THREADS",
    "STAGES",
    "AudioPath",
    "FrozenSpec",
    "Limits",
    "Option",
    "Precision",
    "Recipe",
    "RunSpec",
    "ScenarioName",
    "Seed",
    "StageChoice",
    "StageName",
    "SweepSpec",
    "Threads",
    "check_device",
    "default_recipes",
    "find_recipe",
    "load_model",
    "load_recipes",
    "load_sweep",
    "nearest",
    "parse_recipes",
    "parse_run",
    "read_recipes",
]
