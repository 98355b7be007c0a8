"""Named arrays in one file (`.npz`), which appears whole or not at all. It knows files, not what the arrays mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def save_arrays(file: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write under a name of this process's own and rename; OSError when it cannot be written, and then no trace."""
    partial = file.with_name(f".{file.stem}.{os.getpid()}.partial.npz")
    try:
        np.savez(partial, **arrays)  # type: ignore[arg-type]  # NumPy types its keyword `allow_pickle` into the mapping
        os.replace(partial, file)
    finally:
        partial.unlink(missing_ok=True)


def load_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file, none when it was never written."""
    if not file.exists():
        return {}
    with np.load(file) as archive:
        return {name: archive[name] for name in archive.files}
