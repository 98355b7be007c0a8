from __future__ import annotations

from pathlib import Path

import pytest

from labkit.engines.base import Available, Unavailable
from labkit.errors import UnavailableError
from labkit.upstream import environment


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with an interpreter's file and no packages, named by the variable."""
    file = tmp_path / "venv" / "bin" / "python"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv(environment.VARIABLE, str(file))
    return file


def install(python: Path) -> None:
    (python.parents[1] / "lib" / "python3.11" / "site-packages" / "ChatTTS").mkdir(parents=True)


def test_a_named_environment_with_the_package_is_available(python: Path) -> None:
    install(python)
    assert environment.availability() == Available()
    assert environment.require_python() == python


def test_an_environment_without_the_package_says_what_to_do(python: Path) -> None:
    answer = environment.availability()
    assert isinstance(answer, Unavailable)
    assert "no ChatTTS package" in answer.reason and str(python) in answer.reason
    assert "scripts/make_upstream_env" in answer.remedy


def test_a_named_interpreter_that_is_missing_is_never_replaced_by_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(environment.VARIABLE, str(tmp_path / "nothing"))
    assert environment.find_python() is None
    with pytest.raises(UnavailableError, match=r"nothing is not a file.*make_upstream_env"):
        environment.require_python()


def test_an_environment_beside_the_working_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(environment.VARIABLE, raising=False)
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "a" / "b" / "c" / "environment.py"))
    monkeypatch.chdir(tmp_path)
    assert environment.find_python() is None
    file = tmp_path / ".upstream-venv" / "bin" / "python"
    file.parent.mkdir(parents=True)
    file.touch()
    assert environment.find_python() == file


def test_another_device_is_unavailable_rather_than_silently_the_cpu(python: Path) -> None:
    install(python)
    answer = environment.availability("cuda")
    assert isinstance(answer, Unavailable) and "'cuda'" in answer.reason
