"""How a pipeline is driven while it is measured: one file per scenario behind `run_scenario`.

To add a scenario: one module with a `run(drive)` function, one line in `_REGISTRY`, its name in
`labkit.spec.ScenarioName`, and a test beside `tests/scenarios/test_replay.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from labkit.errors import SpecError
from labkit.measure.samples import SampleRecorder
from labkit.scenarios.base import Drive, Keep, Reference, Text
from labkit.scenarios.drivers import driver_for
from labkit.spec import RunSpec

# name -> "module:function"
_REGISTRY: dict[str, str] = {
    "replay": "labkit.scenarios.replay:run",
    "single": "labkit.scenarios.single:run",
}


def scenario_names() -> tuple[str, ...]:
    """The scenarios that can be run."""
    return tuple(_REGISTRY)


def require_scenario(name: str) -> None:
    """`SpecError` for a scenario that is not built, with the known ones."""
    if name not in _REGISTRY:
        raise SpecError(f"scenario {name!r} cannot be run; known scenarios: {', '.join(_REGISTRY)}.")


def run_scenario(
    name: str,
    pipeline: Any,
    spec: RunSpec,
    texts: Sequence[Text],
    references: Mapping[str, Reference],
    recorder: SampleRecorder,
    *,
    keep: Keep | None = None,
) -> None:
    """Drive `pipeline` through the texts and record one sample for every text and repetition.

    pipeline: a `labkit.pipeline.Pipeline`, or a whole pipeline that has a driver (see `drivers`).
    references: what the reference recipe said, by text id; only `replay` needs them.
    keep: called outside the timed region with each clip of the first measured repetition.
    """
    require_scenario(name)
    module, function = _REGISTRY[name].split(":")
    drive = Drive(driver_for(pipeline, spec), spec, tuple(texts), dict(references), recorder, keep)
    getattr(importlib.import_module(module), function)(drive)
