"""The walls of the house: who may import whom, and what importing the package may cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "labkit"

# Floors from the ground up; a module imports from lower floors only, and from its own package.
FLOORS: list[set[str]] = [
    {"errors", "quality", "measure"},
    {"spec", "environment", "text", "quantize"},
    {"model", "results"},
    {"voices"},
    {"engines", "export", "compare"},
    {"synthesis"},
    {"calibration"},
    {"artifacts", "report", "upstream"},
    {"pipeline"},
    {"scenarios", "reference", "sensitivity"},
    {"speak", "search"},
    {"run"},
    {"sweep", "bench", "doctor", "gate", "training", "gpu_check", "listening"},
    {"faults"},
    {"cli"},
    {"__main__"},
]
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}
ANYONE_MAY_IMPORT = {"errors", "spec"}
UPWARDS_ALLOWED = {("quantize", "model")}
TORCH_FREE = {"results", "report", "compare", "errors", "spec", "environment", "measure"}


def _unit(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def _imports(path: Path) -> list[tuple[str, int]]:
    """Every module imported anywhere in a file, lazily or not, with its line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append((node.module, node.lineno))
            if node.module == "labkit":
                found += [(f"labkit.{alias.name}", node.lineno) for alias in node.names]
    return found


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py" and "assets" not in p.parts)


def test_every_unit_stands_on_a_floor() -> None:
    assert {_unit(path) for path in MODULES} - {"__init__"} <= set(FLOOR)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_downwards(path: Path) -> None:
    unit = _unit(path)
    for module, line in _imports(path):
        parts = module.split(".")
        if parts[0] != "labkit" or len(parts) < 2 or parts[1] not in FLOOR:
            continue
        target = parts[1]
        allowed = (
            target == unit
            or (target in ANYONE_MAY_IMPORT and unit not in ANYONE_MAY_IMPORT)
            or (unit == "spec" and target == "errors")
            or FLOOR[target] < FLOOR[unit]
            or (unit, target) in UPWARDS_ALLOWED
        )
        assert allowed, (
            f"{path.name}:{line}: {unit} (floor {FLOOR[unit]}) imports {target} (floor {FLOOR[target]})"
        )


@pytest.mark.parametrize("path", [p for p in MODULES if _unit(p) in {"measure", "quality"}], ids=str)
def test_measuring_and_judging_know_nothing_of_the_lab(path: Path) -> None:
    units = {m.split(".")[1] for m, _ in _imports(path) if m.startswith("labkit.")}
    assert units <= {"errors", _unit(path)}


@pytest.mark.parametrize("path", [p for p in MODULES if _unit(p) in TORCH_FREE], ids=str)
def test_reports_need_no_torch(path: Path) -> None:
    names = {module.split(".")[0] for module, _ in _imports(path)}
    assert not names & {"torch", "onnxruntime", "onnx"} or _unit(path) == "environment"


@pytest.mark.parametrize("unit", ["artifacts"])
def test_only_artifacts_make_artifacts(unit: str) -> None:
    for path in MODULES:
        if _unit(path) in {unit, "export", "quantize"}:
            continue
        targets = {m.split(".")[1] for m, _ in _imports(path) if m.count(".") and m.startswith("labkit.")}
        assert not targets & {"export", "quantize"}, path


def test_import_is_light_and_loads_no_backend() -> None:
    code = (
        # CPU time: waiting for a core is no fault of the package
        "import sys, time; t = time.process_time(); import labkit; s = time.process_time() - t;"
        "heavy = {'torch', 'onnxruntime', 'pandas', 'matplotlib', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy; assert s < 0.3, s"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
