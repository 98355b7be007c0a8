"""What a sweep asks for, in order, and which part of it the store already holds.

It checks every name before any work: one typing mistake must not cost the hour before it is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labkit.errors import SpecError
from labkit.results.store import Store, load_wide
from labkit.spec import Recipe, RunSpec, SweepSpec


@dataclass(frozen=True)
class PlannedRun:
    """One run of the grid. `number` counts from 1; `done` is the id of the run that already did this work."""

    number: int
    of: int
    spec: RunSpec
    notebook: Path
    done: str | None = None

    @property
    def title(self) -> str:
        """How progress lines and failures call it."""
        return f"[{self.number}/{self.of}] {self.spec.recipe.name} · {self.spec.scenario}"


def plan(spec: SweepSpec, recipes: Mapping[str, Recipe], store: Store, *, resume: bool) -> list[PlannedRun]:
    """Expand the grid; raises the user's error for the first name that is unknown or cannot be combined."""
    runs = spec.runs(recipes)
    check_runs(runs)
    done = _done(store, spec.name) if resume else {}
    width = len(str(len(runs)))
    folder = store.folder.resolve() / "notebooks" / spec.name
    return [
        PlannedRun(
            number, len(runs), run, folder / f"{number:0{width}d}-{run.recipe.name}-{run.scenario}.ipynb",
            done.get(run.work_hash()),
        )
        for number, run in enumerate(runs, start=1)
    ]  # fmt: skip


def check_runs(runs: list[RunSpec]) -> None:
    """Everything a user can get wrong about any of the runs; the error says which run it was."""
    from labkit.run.request import plan_run

    for run in runs:
        try:
            plan_run(run)
        except SpecError as error:
            raise SpecError(f"{run.recipe.name} on {run.voice}, {run.scenario}: {error}") from error


def _done(store: Store, sweep: str) -> dict[str, str]:
    """Work hash -> run id of what is already `ok` on a machine like this one."""
    from labkit.environment import describe_environment, machine_class

    wide = load_wide(store.folder, sweep=sweep)
    here = wide[(wide["status"] == "ok") & (wide["machine_class"] == machine_class(describe_environment()))]
    return dict(zip(here["work_hash"], here["run_id"], strict=True))
