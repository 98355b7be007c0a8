"""Files that must agree with each other: environment.yml, pyproject, CI, licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def conda() -> dict:
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def test_conda_environment_has_only_known_keys(conda: dict) -> None:
    assert set(conda) == {"name", "channels", "dependencies"}


def test_conda_python_satisfies_pyproject(conda: dict, project: dict) -> None:
    (pin,) = [d for d in conda["dependencies"] if isinstance(d, str) and d.startswith("python=")]
    least = re.fullmatch(r">=3\.(\d+)", project["requires-python"])
    assert least and int(pin.removeprefix("python=3.")) >= int(least[1])


def test_conda_installs_existing_extras_of_this_package(conda: dict, project: dict) -> None:
    (pip,) = [d["pip"] for d in conda["dependencies"] if isinstance(d, dict)]
    (line,) = pip
    extras = re.fullmatch(r"-e \.\[([a-z,]+)\]", line)
    assert extras and set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_the_three_runtimes_are_exclusive(project: dict) -> None:
    runtimes = {
        extra: [d for d in wanted if d.startswith("onnxruntime")]
        for extra, wanted in project["optional-dependencies"].items()
    }
    assert {extra for extra, found in runtimes.items() if found} == {"cpu", "gpu", "directml"}
    assert all(len(runtimes[extra]) == 1 for extra in ("cpu", "gpu", "directml"))
    assert not any(d.startswith("onnxruntime") for d in project["dependencies"])


def test_ci_runs_the_readme_command() -> None:
    commands = (ROOT / ".ci" / "run").read_text().splitlines()
    assert "make test" in commands and any(line.startswith("exec make gate") for line in commands)
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme and "make test" in readme


def test_licence_is_apache() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_the_voice_fits_its_budget() -> None:
    files = [p for p in (ROOT / "labkit" / "assets" / "nano").rglob("*") if p.is_file()]
    assert files and sum(p.stat().st_size for p in files) <= 12_000_000
