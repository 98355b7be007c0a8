"""The folder of made files: one subfolder per content hash, each with a manifest, checked before use.

It knows nothing of what the files are for. A subfolder appears whole or not at all: it is filled under a temporary name
and renamed; a file lock keeps two processes from making the same one twice.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labkit.errors import ArtifactError
from labkit.voices import cache_folder

MANIFEST = "manifest.json"
_HASH_LETTERS = 32
_REMEDY = "Set LABKIT_CACHE to a folder on a writable disk with room for the voice's weights."


_CANNOT_WRITE = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EIO,
    }
)


def content_hash(inputs: Mapping[str, Any]) -> str:
    """Hash of everything that decides the bytes of an artifact."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LETTERS]


class ArtifactFolder:
    """The artifacts under one cache folder."""

    def __init__(self, cache: Path | None = None) -> None:
        self.root = (cache or cache_folder()) / "artifacts"

    def path(self, key: str) -> Path:
        return self.root / key

    def find(self, key: str) -> tuple[dict[str, Any] | None, str]:
        """(manifest, "") of a sound artifact; (None, "") when there is none; (None, problem) for a damaged one."""
        folder = self.path(key)
        if not folder.exists():
            return None, ""
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            problem = _first_problem(folder, manifest["files"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            return None, f"its {MANIFEST} is unreadable ({error})"
        return (None, problem) if problem else (manifest, "")

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Hold the artifact against other processes; its content may have appeared while waiting."""
        from filelock import FileLock

        with _named_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / f"{key}.lock")
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def filling(self, key: str) -> Iterator[Path]:
        """A temporary folder to fill; it becomes the artifact when `publish` is called on it, else it is removed.

        Call it under the artifact's lock: what a killed process left half-made is cleared away first.
        """
        with _named_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            for leftover in self.root.glob(f".{key}-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=self.root))
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def publish(self, key: str, folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Write the manifest (with size and sha256 of each file) and put the folder in its place."""
        complete = {**manifest, "content_hash": key, "files": describe_files(folder)}
        (folder / MANIFEST).write_text(json.dumps(complete, indent=1) + "\n", encoding="utf-8")
        folder.chmod(0o755)
        final = self.path(key)
        if final.exists():
            shutil.rmtree(final)
        os.replace(folder, final)
        return complete


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of each file of a folder."""
    return {path.name: _describe(path) for path in sorted(folder.iterdir())}


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"size_bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _first_problem(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> str:
    for name, expected in files.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        found = path.stat().st_size
        if found != expected["size_bytes"]:
            return f"{name} has {found} bytes instead of {expected['size_bytes']}"
        if _describe(path) != expected:
            return f"{name} has changed since it was made"
    return ""


@contextmanager
def _named_errors(root: Path) -> Iterator[None]:
    """Disk full, no permission, read-only: an error that names the folder and the remedy.

    Any other OSError is the maker's own (a tool that is not there, say) and passes as it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        raise ArtifactError(f"artifacts cannot be written under {root}: {error}. {_REMEDY}") from error
