"""Committed notebooks are thin, reviewable, without outputs, and exactly what their sources say."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from labkit.results.store import Store
from labkit.sweep.notebook import execute_notebook
from labkit.voices import Voice
from tests.results.factory import SPEED, TEXTS, clip, document, failed

FOLDER = Path(__file__).parent.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MAX_LINES = 15
each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def test_the_notebooks_that_the_lab_promises_are_there() -> None:
    assert {"00_tour", "20_export", "30_quantize", "35_sensitivity", "40_benchmark", "90_sweep_report"} <= {
        path.stem for path in SOURCES
    }
    assert [path.stem for path in SOURCES] == [path.stem for path in NOTEBOOKS]


@each_source
def test_building_again_changes_nothing(source: Path) -> None:
    build = runpy.run_path(str(FOLDER.parent / "scripts" / "build_notebooks"))["build"]
    assert source.with_suffix(".ipynb").read_text(encoding="utf-8") == build(source)


@each_source
def test_source_and_notebook_say_the_same(source: Path) -> None:
    pair = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    written = jupytext.read(source, fmt="py:percent")
    assert [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in pair.cells] == [
        (c.cell_type, c.source, c.metadata.get("tags", [])) for c in written.cells
    ]


@each_notebook
def test_nothing_is_committed_but_the_source(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)


@each_notebook
def test_exactly_one_cell_holds_the_parameters(path: Path) -> None:
    tagged = [cell for cell in cells(path, "code") if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    assert all(isinstance(node, ast.Assign) for node in ast.parse(tagged[0].source).body)
    assert papermill.inspect_notebook(str(path))


@each_notebook
def test_parameters_are_checked_by_the_next_cell(path: Path) -> None:
    code = cells(path, "code")
    (place,) = [i for i, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    assert "\nrefuse_unknown_parameters()\n" in code[place + 1].source


@each_notebook
def test_cells_are_short_and_define_nothing(path: Path) -> None:
    for cell in cells(path, "code"):
        assert len(cell.source.splitlines()) <= MAX_LINES, cell.source
        for node in ast.walk(ast.parse(cell.source)):
            assert not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)


@each_notebook
def test_headings_tell_the_story(path: Path) -> None:
    headings = [
        line for cell in cells(path, "markdown") for line in cell.source.splitlines() if line.startswith("#")
    ]
    assert headings[0].startswith("# ")
    assert sum(line.startswith("# ") for line in headings) == 1
    assert len(headings) >= 3


def test_the_report_notebook_reads_a_store_and_writes_the_page(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    for name in SPEED:
        store.write(document(name, sweep="made-up"), audio={f"{item}.flac": clip() for item in TEXTS})
    store.write(failed("upstream", "unavailable", sweep="made-up"))
    output = tmp_path / "report.ipynb"
    execute_notebook(
        FOLDER / "90_sweep_report.ipynb", output, {"sweep": "made-up", "store": str(store.folder)}
    )
    text = output.read_text()
    assert text.count("image/png") >= 3
    assert "made-up.html" in text
    assert (store.folder / "reports" / "made-up.html").exists()


def test_plain_papermill_with_an_unknown_parameter_ends_before_any_work(tmp_path: Path) -> None:
    output = tmp_path / "report.ipynb"
    with pytest.raises(PapermillExecutionError, match=r"no parameter 'stroe' \(did you mean 'store'"):
        papermill.execute_notebook(
            FOLDER / "90_sweep_report.ipynb", output, {"stroe": str(tmp_path)}, progress_bar=False
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["00_tour", "40_benchmark"])
def test_notebooks_that_speak_run_from_top_to_bottom(tmp_path: Path, name: str) -> None:
    output = tmp_path / f"{name}.ipynb"
    execute_notebook(FOLDER / f"{name}.ipynb", output, {"store": str(tmp_path / "results")})
    assert "<audio controls" in output.read_text()
    assert all(d.status == "ok" for d in Store(tmp_path / "results").documents())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labkit.text.check.DomainWarning")
def test_the_quantization_notebook_draws_ranges_and_damage(
    tmp_path: Path, blocky_voice: Voice, monkeypatch
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "quantize.ipynb"
    asked = {"voice": str(blocky_voice.folder), "recipes": ["ort-int8-dynamic", "ort-int4-gptq"], "texts": 3}
    execute_notebook(FOLDER / "30_quantize.ipynb", output, asked)
    assert output.read_text().count('"image/png": "') == 2


@pytest.mark.slow
def test_the_sensitivity_notebook_draws_each_stage(tmp_path: Path, tiny_voice: Voice, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "sensitivity.ipynb"
    asked = {
        "voice": str(tiny_voice.folder),
        "corpus": "english-calibration",
        "texts": 10,
        "bits": [8, 4],
        "budget": "",
    }
    execute_notebook(FOLDER / "35_sensitivity.ipynb", output, asked)
    assert output.read_text().count('"image/png": "') == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labkit.text.check.DomainWarning")
def test_the_export_notebook_shows_both_graphs(tmp_path: Path, tiny_voice: Voice, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "export.ipynb"
    out = tmp_path / "exported"
    execute_notebook(FOLDER / "20_export.ipynb", output, {"voice": str(tiny_voice.folder), "out": str(out)})
    assert "largest difference anywhere" in output.read_text()
    assert {path.name for path in out.iterdir()} == {"portable", "ort", "fp16"}
