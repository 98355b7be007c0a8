"""Corpora: named lists of texts under `calib/`, one text a line, described and hashed in `manifest.yaml`.

A list whose content differs from its hash in the manifest is refused, so that two runs naming one corpus spoke the
same texts.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from labkit.errors import SpecError
from labkit.spec.reading import nearest, parse_mapping, read_text

MANIFEST = "manifest.yaml"
_FIELDS = ("language", "domain", "split", "sha256")


@dataclass(frozen=True)
class CorpusText:
    """One text and the name of its samples in the results."""

    id: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """language: `en` or `zh`; domain: what it is about; split: `calibration` or `evaluation`, which never overlap."""

    name: str
    language: str
    domain: str
    split: str
    texts: tuple[CorpusText, ...]
    content_hash: str


def corpus_folder() -> Path:
    """`LABKIT_CALIB`, else the project's `calib/`, else the copy inside an installed package."""
    if named := os.environ.get("LABKIT_CALIB"):
        return Path(named)
    package = Path(str(resources.files("labkit")))
    beside = package.parent / "calib"
    return beside if (beside / MANIFEST).is_file() else package / "assets" / "calib"


def known_corpora() -> tuple[str, ...]:
    """Names of all corpora in the manifest, in its order."""
    return tuple(_manifest(corpus_folder()))


def load_corpus(name: str) -> Corpus:
    """Read one corpus; `SpecError` names the known ones, a missing file or a content that is not the manifest's."""
    folder = corpus_folder()
    entries = _manifest(folder)
    if name not in entries:
        raise SpecError(
            f"corpus {name!r} is unknown{nearest(name, entries)}; "
            f"known corpora in {folder}: {', '.join(entries)}."
        )
    entry, path = entries[name], folder / f"{name}.txt"
    try:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        lines = content.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"corpus {name!r}: {path} cannot be read as UTF-8 text: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != entry["sha256"]:
        raise SpecError(
            f"corpus {name!r}: {path} has the hash {digest}, but {MANIFEST} says {entry['sha256']}. "
            "Restore the file, or name the changed list anew in the manifest."
        )
    texts = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    width = max(2, len(str(len(texts))))
    named = tuple(CorpusText(f"{name}-{i:0{width}d}", text) for i, text in enumerate(texts, 1))
    return Corpus(name, entry["language"], entry["domain"], entry["split"], named, digest)


def _manifest(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / MANIFEST
    try:
        return _read_manifest(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise SpecError(
            f"corpora: {path} cannot be read ({error.strerror}); set LABKIT_CALIB to the calib folder."
        ) from error


@cache
def _read_manifest(path: Path, modified: int) -> dict[str, dict[str, Any]]:
    entries = parse_mapping(read_text(path), str(path))
    for name, entry in entries.items():
        missing = [key for key in _FIELDS if key not in entry] if isinstance(entry, dict) else _FIELDS
        if missing:
            raise SpecError(f"{path}: corpus {name!r} lacks {', '.join(missing)}.")
    return entries
