"""The sweep itself: check everything, run what is missing, give every run a row, write the report.

It knows the order of things and what counts as done. It measures nothing: each notebook starts `labkit.run`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from labkit.errors import StoreError
from labkit.report import build_report
from labkit.results.schema import Failure, RunDocument
from labkit.results.store import Store, new_run_id
from labkit.results.units import format_value
from labkit.run import UNSAVED, longest_run_s
from labkit.spec import Recipe, SweepSpec, default_recipes
from labkit.sweep.executor import Executor, JobEnd, JobFailure, LocalExecutor, NotebookJob
from labkit.sweep.plan import PlannedRun, plan

NOTEBOOK = "40_benchmark.ipynb"
NOTEBOOK_OVERHEAD_S = 120.0  # a kernel, its imports and some plots, on a machine that is busy
Tell = Callable[[str], None]


@dataclass(frozen=True)
class SweepResult:
    """What became of every run of the grid, in its order.

    `notebook_errors` maps a run's title to what went wrong in its notebook outside the measurement.
    """

    name: str
    documents: list[RunDocument]
    report: Path | None
    skipped: int = 0
    notebook_errors: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Something that should have worked did not; a recipe this machine cannot run is no failure."""
        return bool(self.notebook_errors) or any(
            d.status not in ("ok", "unavailable") for d in self.documents
        )

    def summary(self) -> dict[str, Any]:
        """Plain values for `--json`."""
        return {
            "sweep": self.name,
            "failed": self.failed,
            "skipped": self.skipped,
            "report": str(self.report) if self.report else None,
            "notebook_errors": self.notebook_errors,
            "runs": [
                {
                    "run_id": d.run_id,
                    "recipe": d.spec.recipe.name,
                    "scenario": d.spec.scenario,
                    "status": d.status,
                }
                for d in self.documents
            ],
        }


def sweep(
    spec: SweepSpec,
    *,
    store: Store | Path | str | None = None,
    recipes: Mapping[str, Recipe] | None = None,
    resume: bool = True,
    progress: Tell | None = None,
    executor: Executor | None = None,
    notebook: Path | None = None,
) -> SweepResult:
    """Carry out a grid of runs through the benchmark notebook, record each, and write the report.

    Raises the user's errors and `StoreError` before any work; from then on every run becomes a row. `resume`
    leaves out what the store already holds as `ok`. On Ctrl-C the run under way is ended without a row, `progress`
    is told how to go on, and `KeyboardInterrupt` is raised again. `notebook` replaces the lab's own.
    """
    from labkit.sweep.notebook import find_notebook

    tell = progress or (lambda line: None)
    results = store if isinstance(store, Store) else Store(store)
    source = notebook or find_notebook(NOTEBOOK)
    planned = plan(spec, default_recipes() if recipes is None else recipes, results, resume=resume)
    results.check_writable()
    with _alone(results, spec.name):
        results.write_sweep(spec)
        finished: list[RunDocument] = []
        errors: dict[str, str] = {}
        try:
            for run in planned:
                document, error = _one(run, spec.name, results, executor or LocalExecutor(), source, tell)
                finished.append(document)
                if error:
                    errors[run.title] = error
        except KeyboardInterrupt:
            tell(
                f"interrupted after {len(finished)} of {len(planned)} runs; they are recorded in {results.folder}. "
                "The same command goes on from here."
            )
            raise
        report = build_report(results, sweep=spec.name, baseline=spec.baseline)
    skipped = sum(run.done is not None for run in planned)
    return SweepResult(spec.name, finished, report, skipped, errors)


def _one(
    run: PlannedRun, sweep: str, store: Store, executor: Executor, notebook: Path, tell: Tell
) -> tuple[RunDocument, str]:
    """Carry out or look up one run; returns its document and what went wrong in the notebook around it."""
    if run.done is not None:
        tell(f"{run.title}: already recorded as {run.done}")
        return store.read(run.done), ""
    tell(f"{run.title}: started")
    before, started = set(store.files()), time.time()
    job = NotebookJob(
        notebook,
        run.notebook,
        {
            "spec": run.spec.model_dump(mode="json", exclude_unset=True),
            "store": str(store.folder.resolve()),
            "sweep": sweep,
        },
        longest_run_s(run.spec) + NOTEBOOK_OVERHEAD_S,
    )
    end = executor.run(job)
    document = _recorded(run, sweep, store, before)
    if document is None:
        document = _row_for_lost_run(run, sweep, end)
        if file := _unsaved(run, sweep, started):  # where nothing can be kept, going on would lose every run
            raise StoreError(
                f"results folder {store.folder} could not be written when {run.title} ended; free some disk space or "
                f"choose another folder with --results. The run itself is not lost: move {file} into "
                f"{store.runs_folder}."
            )
        store.write(document)
        tell(f"{run.title}: {_words(document)} in {end.wall_s:.0f} s")
        return document, ""
    error = f"{end.failure.kind}: {end.failure.message} (see {run.notebook})" if end.failure else ""
    tell(
        f"{run.title}: {_words(document)} in {end.wall_s:.0f} s"
        + (f"; its notebook failed: {error}" if error else "")
    )
    return document, error


def _recorded(run: PlannedRun, sweep: str, store: Store, before: set[Path]) -> RunDocument | None:
    """The document that this run has written, if it came so far."""
    for file in reversed([file for file in store.files() if file not in before]):
        with suppress(
            StoreError
        ):  # a damaged document of somebody else is reported by whoever reads the store
            document = store.read(file.stem)
            if document.sweep == sweep and document.work_hash == run.spec.work_hash():
                return document
    return None


def _unsaved(run: PlannedRun, sweep: str, since: float) -> Path | None:
    """Where a run put its document when the store could not take it: its notebook may have been unable to say so."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{UNSAVED}*"), reverse=True):
        spare = Store(folder)
        if folder.stat().st_mtime < since - 1.0:  # of an earlier sweep; file systems round their times
            continue
        if document := _recorded(run, sweep, spare, set()):
            return spare.runs_folder / f"{document.run_id}.json"
    return None


def _row_for_lost_run(run: PlannedRun, sweep: str, end: JobEnd) -> RunDocument:
    """The truth about a run whose notebook ended without recording it."""
    from labkit.environment import describe_environment, machine_class

    lost = end.failure or JobFailure("NoDocument", "the notebook ran to its end and recorded nothing")
    started = datetime.now(UTC)
    environment = describe_environment()
    return RunDocument(
        run_id=new_run_id(run.spec.recipe.name, started),
        started_at=started.isoformat(),
        spec=run.spec,
        work_hash=run.spec.work_hash(),
        sweep=sweep,
        status="timeout" if lost.kind == "Watchdog" else "failed",
        failure=Failure(
            kind=lost.kind,
            message=lost.message,
            stage="notebook",
            remedy=f"See {run.notebook.name} and its .log in {run.notebook.parent}.",
            traceback=lost.traceback,
        ),
        environment=environment,
        machine_class=machine_class(environment),
    )


def _words(document: RunDocument) -> str:
    if document.failure is not None:
        return f"{document.status} ({document.failure.message})"
    from labkit.results.frames import wide_row

    return f"ok, RTF {format_value('rtf_p50', wide_row(document).numbers.get('rtf_p50'))}"


@contextmanager
def _alone(store: Store, name: str) -> Iterator[None]:
    """Holds the sweep's name: two drivers of one sweep would do all work twice."""
    from filelock import FileLock, Timeout

    store.sweeps_folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(store.sweeps_folder / f".{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"sweep {name!r} is running on {store.folder} already; wait for it, or give this one another name or "
            "another folder with --results."
        ) from None
    try:
        yield
    finally:
        lock.release()
