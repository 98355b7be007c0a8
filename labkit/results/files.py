"""The files of a results folder: where they lie, how they are written whole or not at all, what to do when they cannot.

It knows no documents: those are in `labkit.results.store`.
"""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import ResultsFolderError, StoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE = 24_000
REMEDIES = {
    errno.ENOSPC: "free some disk space or choose another folder with --results",
    errno.EDQUOT: "free some of your disk quota or choose another folder with --results",
    errno.EROFS: "the file system is read-only: choose another folder with --results or LABKIT_RESULTS",
    errno.EACCES: "change its permissions or choose another folder with --results or LABKIT_RESULTS",
    errno.ENOTDIR: "a file stands where a folder should be: move it or choose another folder with --results",
}


def default_folder() -> Path:
    """Where results go: `LABKIT_RESULTS` when set, else `./results`."""
    return Path(os.environ.get("LABKIT_RESULTS") or "results")


def refuse_file(folder: Path) -> None:
    """`ResultsFolderError` when the path, or what it lies in, is a file: no folder can be there."""
    nearest = next((path for path in (folder, *folder.parents) if os.path.exists(path)), None)
    if nearest is not None and not os.path.isdir(nearest):
        raise ResultsFolderError(
            f"results folder {folder.parent}: {nearest} is a file; {REMEDIES[errno.ENOTDIR]}."
        )


def write_atomic(target: Path, content: bytes) -> None:
    """Readers see all of the content or nothing, also after a power cut."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(3)}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_audio(target: Path, samples: NDArray[np.float32]) -> None:
    import io

    import numpy as np
    import soundfile

    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise StoreError(f"audio {target.name}: finite mono samples are needed, got shape {samples.shape}.")
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, SAMPLE_RATE, format="FLAC", subtype="PCM_16")
    write_atomic(target, buffer.getvalue())
