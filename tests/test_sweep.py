"""A sweep gives every run a truthful row, loses nothing that was recorded, and goes on where it stopped.

The driver is tested with an executor that plays a notebook; the executor with small notebooks of its own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from labkit.environment import describe_environment, machine_class
from labkit.errors import SpecError, StoreError
from labkit.results.schema import RunDocument
from labkit.results.store import Store
from labkit.spec import SweepSpec, parse_run
from labkit.sweep import LocalExecutor, sweep
from labkit.sweep.executor import JobEnd, JobFailure, NotebookJob
from labkit.sweep.notebook import check_parameters, find_notebook
from tests.results.factory import SPEED, document, failed, recipe

RECIPES = {name: recipe(name) for name in (*SPEED, "upstream")}
REQUEST = import_module("labkit.run.request")  # by name: `labkit.run` is the public function
DRIVER = import_module("labkit.sweep.driver")
build_report = DRIVER.build_report
HERE = machine_class(describe_environment())
Play = Callable[[NotebookJob, RunDocument, Store], JobEnd]


def good(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
    store.write(made)
    return JobEnd(1.0)


def dies(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
    return JobEnd(2.0, JobFailure("DeadKernelError", "the notebook's kernel died"))


@dataclass
class Stage:
    """An executor that plays what happens to each recipe's notebook, and remembers which were executed."""

    plays: dict[str, Play] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)

    def run(self, job: NotebookJob) -> JobEnd:
        spec = parse_run(job.parameters["spec"], place="job")
        self.executed.append(spec.recipe.name)
        made = document(spec.recipe.name, spec=spec, sweep=job.parameters["sweep"], machine_class=HERE)
        return self.plays.get(spec.recipe.name, good)(job, made, Store(job.parameters["store"]))


@pytest.fixture(autouse=True)
def _only_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The voice of these sweeps need not exist, and their pages are not read: both have tests of their own."""
    monkeypatch.setattr(REQUEST, "plan_run", lambda spec: None)
    monkeypatch.setattr(DRIVER, "build_report", lambda store, **choice: store.folder / "report.html")


def asked(*names: str, **more: Any) -> SweepSpec:
    return SweepSpec(name="demo", recipe=names or ("torch-fp32", "ort-fp32"), texts=3, **more)


def go(folder: Path, spec: SweepSpec, stage: Stage, **more: Any) -> Any:
    return sweep(spec, store=folder, recipes=RECIPES, executor=stage, notebook=Path("unused.ipynb"), **more)


def test_every_run_of_the_grid_has_a_row_and_the_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DRIVER, "build_report", build_report)
    stage, lines = Stage(), []
    result = go(tmp_path, asked(scenario=("replay", "single")), stage, progress=lines.append)
    assert stage.executed == ["torch-fp32", "ort-fp32"] * 2
    assert [d.status for d in result.documents] == ["ok"] * 4
    assert not result.failed
    assert "ort-fp32" in result.report.read_text()
    assert lines[0] == "[1/4] torch-fp32 · replay: started"
    assert lines[1].startswith("[1/4] torch-fp32 · replay: ok, RTF 0.")
    assert json.dumps(result.summary())


def test_a_lost_notebook_becomes_a_failed_row_and_the_sweep_goes_on(tmp_path: Path) -> None:
    result = go(tmp_path, asked(), Stage({"torch-fp32": dies}))
    lost, fine = result.documents
    assert (lost.status, fine.status) == ("failed", "ok")
    assert lost.failure.kind == "DeadKernelError"
    assert "1-torch-fp32-single.ipynb" in lost.failure.remedy
    assert Store(tmp_path).read(lost.run_id) == lost
    assert result.failed


def test_a_notebook_stopped_by_the_watchdog_is_a_timeout(tmp_path: Path) -> None:
    def stuck(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        return JobEnd(job.seconds, JobFailure("Watchdog", f"stopped from outside after {job.seconds:.0f} s"))

    [row] = go(tmp_path, asked("torch-fp32"), Stage({"torch-fp32": stuck})).documents
    assert (row.status, row.failure.stage) == ("timeout", "notebook")


def test_a_notebook_that_records_nothing_is_a_failed_row(tmp_path: Path) -> None:
    [row] = go(tmp_path, asked("torch-fp32"), Stage({"torch-fp32": lambda *_: JobEnd(1.0)})).documents
    assert (row.status, row.failure.kind) == ("failed", "NoDocument")


def test_a_cell_that_fails_after_the_run_leaves_the_measurement_ok_and_is_told(tmp_path: Path) -> None:
    def plot_breaks(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        store.write(made)
        return JobEnd(1.0, JobFailure("ValueError", "cannot draw this"))

    result = go(tmp_path, asked("torch-fp32"), Stage({"torch-fp32": plot_breaks}))
    assert result.documents[0].status == "ok"
    assert "cannot draw this" in result.notebook_errors["[1/1] torch-fp32 · single"]
    assert result.failed


def test_a_recipe_that_cannot_run_here_is_no_failure(tmp_path: Path) -> None:
    def unavailable(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        store.write(failed("upstream", "unavailable", spec=made.spec, sweep="demo", message="not installed"))
        return JobEnd(1.0)

    result = go(tmp_path, asked("upstream", "torch-fp32"), Stage({"upstream": unavailable}))
    assert [d.status for d in result.documents] == ["unavailable", "ok"]
    assert not result.failed


def test_only_what_is_not_ok_is_run_again(tmp_path: Path) -> None:
    first = go(tmp_path, asked(), Stage({"ort-fp32": dies}))
    again = Stage()
    second = go(tmp_path, asked(), again)
    assert again.executed == ["ort-fp32"]
    assert second.skipped == 1
    assert second.documents[0] == first.documents[0]
    assert not second.failed
    third = Stage()
    go(tmp_path, asked(), third, resume=False)
    assert third.executed == ["torch-fp32", "ort-fp32"]


def test_other_work_or_another_machine_is_not_taken_for_done(tmp_path: Path) -> None:
    go(tmp_path, asked("torch-fp32"), Stage())
    changed = Stage()
    go(tmp_path, asked("torch-fp32", repeats=7), changed)
    assert changed.executed == ["torch-fp32"]
    elsewhere = Stage()
    store = Store(tmp_path / "copied")
    spec = asked("torch-fp32").runs(RECIPES)[0]
    store.write(document(spec=spec, machine_class="another machine"))
    go(tmp_path / "copied", asked("torch-fp32"), elsewhere)
    assert elsewhere.executed == ["torch-fp32"]


def test_ctrl_c_keeps_what_is_recorded_and_says_how_to_go_on(tmp_path: Path) -> None:
    def interrupt(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        raise KeyboardInterrupt

    lines: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, asked(), Stage({"ort-fp32": interrupt}), progress=lines.append)
    assert lines[-1].startswith("interrupted after 1 of 2 runs")
    assert [d.spec.recipe.name for d in Store(tmp_path).documents()] == ["torch-fp32"]
    resumed = Stage()
    go(tmp_path, asked(), resumed)
    assert resumed.executed == ["ort-fp32"]


def test_the_same_sweep_cannot_run_twice_at_once_but_two_sweeps_can(tmp_path: Path) -> None:
    def nested(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        with pytest.raises(StoreError, match="'demo' is running"):
            go(tmp_path, asked("torch-fp32"), Stage())
        other = go(tmp_path, asked("torch-fp32").model_copy(update={"name": "other"}), Stage())
        assert len(other.documents) == 1
        return good(job, made, store)

    result = go(tmp_path, asked("torch-fp32"), Stage({"torch-fp32": nested}))
    assert [d.sweep for d in result.documents] == ["demo"]
    assert {d.sweep for d in Store(tmp_path).documents()} == {"demo", "other"}


def test_names_are_checked_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    with pytest.raises(SpecError, match="'ort-fp33' is unknown \\(did you mean 'ort-fp32'\\?\\)"):
        go(tmp_path, asked("torch-fp32", "ort-fp33"), stage)

    def refuse(spec: Any) -> None:
        if spec.recipe.name == "ort-fp32":
            raise SpecError("corpus 'nanoo' is unknown")

    monkeypatch.setattr(REQUEST, "plan_run", refuse)
    with pytest.raises(SpecError, match=r"ort-fp32 on nano, single: corpus 'nanoo'"):
        go(tmp_path, asked(), stage)
    assert stage.executed == []
    assert Store(tmp_path).documents() == []


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stage = Stage()
    with pytest.raises(StoreError, match="choose another folder"):
        go(tmp_path / "file", asked(), stage)
    assert stage.executed == []


def test_a_store_that_fills_up_ends_the_sweep_and_tells_where_the_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    old = Store(temp / "labkit-unsaved-0")
    old.write(document(spec=asked().runs(RECIPES)[0]))
    os.utime(old.folder, (1e9, 1e9))
    monkeypatch.setattr("tempfile.tempdir", str(temp))

    def full(job: NotebookJob, made: RunDocument, store: Store) -> JobEnd:
        Store(temp / "labkit-unsaved-1").write(made)
        return JobEnd(1.0, JobFailure("OSError", "no space left for the notebook either"))

    stage, store = Stage({"torch-fp32": full}), tmp_path / "store"
    with pytest.raises(StoreError, match=r"could not be written .*: move .*labkit-unsaved-1.*\.json into"):
        go(store, asked(), stage)
    assert stage.executed == ["torch-fp32"] and Store(store).documents() == []


CELLS = {
    "fine": "print('said', text)",
    "raises": "raise LookupError('no such ' + text)",
    "killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kills its parent": "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)",
    "hangs": "import time\ntime.sleep(600)",
}


def job(folder: Path, cell: str, *, seconds: float = 120.0, **parameters: Any) -> NotebookJob:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    notebook.cells = [
        nbformat.v4.new_code_cell("text = 'one'", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(CELLS[cell]),
    ]
    nbformat.write(notebook, folder / f"{cell}.ipynb")
    return NotebookJob(folder / f"{cell}.ipynb", folder / "out" / f"{cell}.ipynb", parameters, seconds)


def descendants() -> list[str]:
    """Command lines of workers and kernels that this process has left behind."""
    lines = [" ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)]
    return [line for line in lines if "labkit" in line or "ipykernel" in line]


def test_a_notebook_runs_with_its_parameters(tmp_path: Path) -> None:
    task = job(tmp_path, "fine", text="three")
    assert LocalExecutor().run(task).failure is None
    assert "said three" in task.output.read_text()
    assert sorted(p.name for p in task.output.parent.iterdir()) == ["fine.ipynb", "fine.log"]
    assert descendants() == []


def test_an_error_in_a_cell_is_named_by_its_class_and_the_notebook_is_kept(tmp_path: Path) -> None:
    task = job(tmp_path, "raises", text="three")
    failure = LocalExecutor().run(task).failure
    assert (failure.kind, failure.message) == ("LookupError", "no such three")
    assert "LookupError" in failure.traceback
    assert "\x1b" not in failure.traceback
    assert "LookupError" in task.output.read_text()


def test_a_killed_kernel_is_a_failure_whatever_the_saved_notebook_says(tmp_path: Path) -> None:
    failure = LocalExecutor().run(job(tmp_path, "killed")).failure
    assert failure.kind == "DeadKernelError"
    assert "kernel died" in failure.message
    assert descendants() == []


def test_a_killed_worker_is_named_by_its_signal_and_takes_its_kernel_along(tmp_path: Path) -> None:
    failure = LocalExecutor().run(job(tmp_path, "kills its parent")).failure
    assert (failure.kind, failure.message) == ("SIGKILL", "the notebook's process was ended by SIGKILL")
    assert descendants() == []


def test_the_watchdog_ends_the_whole_tree(tmp_path: Path) -> None:
    started = time.monotonic()
    task = job(tmp_path, "hangs", seconds=8.0)
    failure = LocalExecutor().run(task).failure
    assert failure.kind == "Watchdog"
    assert not list(task.output.parent.glob(".*"))
    assert time.monotonic() - started < 30
    assert descendants() == []


def test_an_unknown_parameter_is_refused_before_the_kernel_starts(tmp_path: Path) -> None:
    task = job(tmp_path, "fine", txt="three")
    failure = LocalExecutor().run(task).failure
    assert failure.kind == "SpecError"
    assert "no parameter 'txt' (did you mean 'text'?)" in failure.message
    assert not task.output.exists()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Path("x"), {1, 2}])
def test_a_parameter_that_is_not_plain_and_finite_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SpecError, match="'text' is not plain"):
        check_parameters(job(tmp_path, "fine").notebook, {"text": value})


def test_a_notebook_that_is_not_there_names_the_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABKIT_NOTEBOOKS", str(tmp_path))
    with pytest.raises(SpecError, match=r"99_none\.ipynb is not in .*LABKIT_NOTEBOOKS"):
        find_notebook("99_none.ipynb")
    monkeypatch.delenv("LABKIT_NOTEBOOKS")
    assert find_notebook("40_benchmark.ipynb").name == "40_benchmark.ipynb"


@pytest.mark.slow
def test_the_smoke_sweep_takes_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labkit.spec import load_sweep

    monkeypatch.undo()
    monkeypatch.setenv("LABKIT_CACHE", os.environ.get("LABKIT_CACHE", str(tmp_path / "cache")))
    spec = load_sweep(Path(__file__).parent.parent / "sweeps" / "smoke.yaml")
    result = sweep(spec, store=tmp_path)
    assert [(d.spec.recipe.name, d.status) for d in result.documents] == [
        ("torch-fp32", "ok"),
        ("ort-fp32", "ok"),
    ]
    assert not result.failed
    assert "<audio controls" in result.report.read_text()
