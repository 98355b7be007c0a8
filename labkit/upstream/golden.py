"""Upstream's answers for the small network, kept in a file so that parity is checked where upstream is not installed.

Long arrays are thinned along their last axis. The file also names the versions that answered and the weights that
were asked, because seeded weights that differ must fail as such and not as a parity error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labkit.upstream.cases import Answers

_LONG = 20_000  # elements above which an array is thinned
_STRIDE = 16
_ABOUT = "about"


class Golden(NamedTuple):
    """answers: thinned; about: versions of the packages that answered, and the `weights` they had."""

    answers: Answers
    about: dict[str, Any]


def thin(answers: Answers) -> Answers:
    """Keep every 16th element along the last axis of long arrays."""
    return {
        name: np.ascontiguousarray(array[..., ::_STRIDE]) if array.size > _LONG else array
        for name, array in answers.items()
    }


def write_golden(file: Path, answers: Answers, about: Mapping[str, Any]) -> None:
    """Write thinned answers and what is said about them."""
    np.savez_compressed(file, **{_ABOUT: np.array(json.dumps(about)), **thin(answers)})  # type: ignore[arg-type]


def read_golden(file: Path) -> Golden:
    """Read what `write_golden` wrote; nothing is unpickled."""
    with np.load(file) as archive:
        answers = {name: archive[name] for name in archive.files}
    return Golden(answers, json.loads(str(answers.pop(_ABOUT))))


def weights_digest(folder: Path) -> str:
    """sha256 over the names and bytes of a voice's weight and tokenizer files."""
    digest = hashlib.sha256()
    for file in sorted([*folder.rglob("*.safetensors"), *folder.rglob("tokenizer.json")]):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
