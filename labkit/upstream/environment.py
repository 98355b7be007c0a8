"""Whether upstream can run on this machine, and where its Python is.

It looks at files only: asking costs microseconds and imports nothing that may be missing.
"""

from __future__ import annotations

import os
from pathlib import Path

from labkit.engines.base import Availability, Available, Unavailable
from labkit.errors import UnavailableError

VARIABLE = "LABKIT_UPSTREAM_PYTHON"
REMEDY = f"Run scripts/make_upstream_env, or set {VARIABLE} to a Python that has chattts 0.2.5."


def find_python() -> Path | None:
    """The interpreter named by LABKIT_UPSTREAM_PYTHON, else `.upstream-venv` beside the package or here."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named) if Path(named).is_file() else None
    program = "Scripts/python.exe" if os.name == "nt" else "bin/python"
    for folder in (Path(__file__).resolve().parents[2], Path.cwd()):
        candidate = folder / ".upstream-venv" / program
        if candidate.is_file():
            return candidate
    return None


def availability(device: str = "cpu") -> Availability:
    """Can the `upstream` pipeline run here? It is compared, and measured, on the CPU."""
    if device != "cpu":
        return Unavailable(
            f"the upstream pipeline is driven on the CPU only, not on {device!r}.",
            "Choose device cpu for it.",
        )
    python = find_python()
    if python is None:
        named = os.environ.get(VARIABLE)
        where = f"{VARIABLE}={named} is not a file" if named else "no .upstream-venv was found"
        return Unavailable(f"upstream's environment is missing: {where}.", REMEDY)
    if not _installed(python):
        return Unavailable(f"upstream's environment at {python} has no ChatTTS package.", REMEDY)
    return Available()


def require_python() -> Path:
    """The interpreter, or `UnavailableError` with the reason and the remedy."""
    answer = availability()
    if isinstance(answer, Unavailable):
        raise UnavailableError(answer.reason, answer.remedy)
    python = find_python()
    assert python is not None  # availability has just found it
    return python


def _installed(python: Path) -> bool:
    root = python.absolute().parents[1]  # not resolved: the link's folder is the environment
    return (
        any(root.glob("lib/python*/site-packages/ChatTTS")) or (root / "Lib/site-packages/ChatTTS").is_dir()
    )
