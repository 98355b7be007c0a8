"""Scorer files: where they lie inside installed packages, whether they are the published ones, and the cache.

It knows packages and hashes; it imports none of the packages it looks into.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
from pathlib import Path

from labkit.errors import LabError


class ScorerFileError(LabError):
    """A scorer's file is missing or is not the published one."""


def package_folder(package: str) -> Path | None:
    """The folder of an installed package, found without importing it; None when it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def package_version(distribution: str) -> str:
    """The installed version, or "" when there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def sha256(*files: Path) -> str:
    """sha256 of the files' bytes, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def verify(wanted: str, *files: Path) -> None:
    """Raise `ScorerFileError` unless the files, one after the other, have the wanted sha256."""
    for file in files:
        if not file.is_file():
            raise ScorerFileError(f"{file} is missing; reinstall its package.")
    found = sha256(*files)
    if found != wanted:
        names = " + ".join(str(file) for file in files)
        raise ScorerFileError(
            f"{names} has sha256 {found[:12]}…, the published file {wanted[:12]}…; reinstall its package."
        )


def scorer_cache() -> Path:
    """Where assembled scorers are kept: `$LABKIT_CACHE/scorers`, else `~/.cache/labkit/scorers`."""
    return Path(os.environ.get("LABKIT_CACHE") or Path.home() / ".cache" / "labkit") / "scorers"
