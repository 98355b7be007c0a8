"""One recording in one file: named arrays, written whole, read back whole or not at all."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.errors import LabError
from labkit.results.arrays import save_arrays

ARRAYS = ("ids", "codes", "hidden", "mel")
"""The fields of a `Recording` beside its text, in their order."""


def write_recording(file: Path, **arrays: NDArray[Any]) -> None:
    try:
        save_arrays(file, arrays)
    except OSError as error:
        raise unwritable(file, error) from error


def read_recording(file: Path) -> dict[str, NDArray[Any]] | None:
    """The arrays of a file, or None when it is missing or damaged: then it is made again."""
    try:
        with np.load(file) as stored:
            return {name: stored[name] for name in ARRAYS}
    except (FileNotFoundError, NotADirectoryError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def unwritable(path: Path, error: OSError) -> LabError:
    return LabError(
        f"calibration: {path} cannot be written ({error.strerror}); free space or set LABKIT_CACHE."
    )
