"""The results folder: one immutable JSON document per run, its audio beside it, read back whole.

    <store>/runs/<run_id>.json      the truth; written to a temporary name, synced, renamed
    <store>/runs/<run_id>/*.flac    audio kept on request
    <store>/sweeps/<name>.json      what a sweep asked for, so that a report knows its baseline
    <store>/index.parquet           a cache that may be deleted at any time (see `labkit.results.index`)

It knows files and validity. Statistics are in `labkit.results.frames`. Many processes may write at once: each
run has a file of its own. A document that cannot be read is reported with its reason and stops nothing.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from labkit.errors import ResultsFolderError, StoreError, UserError
from labkit.results.files import REMEDIES, default_folder, refuse_file, write_atomic, write_audio
from labkit.results.migrate import migrate
from labkit.results.ratings import Vote, read_votes
from labkit.results.schema import RunDocument
from labkit.spec import SweepSpec

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MIN_FREE_BYTES = 64 * 2**20  # a run with kept audio takes a few megabytes; stop while there is room to say so
_MEND = "put back an unharmed copy, or move it out of the folder"


class DamagedDocumentWarning(UserWarning):
    """A run document was passed over because it cannot be read; the message names it and says why."""


@dataclass(frozen=True)
class Damaged:
    """A file that should be a run document and is not."""

    path: Path
    reason: str


def new_run_id(recipe: str, now: datetime | None = None) -> str:
    """A unique id that sorts by start time, e.g. `20260131T120000.123456Z-torch-fp32-1f2e3d`."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%S.%f}Z-{recipe}-{secrets.token_hex(3)}"


class Store:
    """One results folder. Opening it writes nothing; folders appear with the first write.

    `ResultsFolderError` when a file stands in its place: read as a folder it would seem to hold no runs.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        self.runs_folder = self.folder / "runs"
        self.sweeps_folder = self.folder / "sweeps"
        refuse_file(self.runs_folder)

    def check_writable(self) -> None:
        """Prove before any work that a result can be kept; `ResultsFolderError` says why not and what to do."""
        probe = self.runs_folder / f".probe-{os.getpid()}-{secrets.token_hex(3)}"
        try:
            write_atomic(probe, b"0" * 4096)
            probe.unlink()
            free = shutil.disk_usage(self.runs_folder).free
        except OSError as error:
            raise ResultsFolderError(str(self._error("written", error))) from error
        if free < MIN_FREE_BYTES:
            raise ResultsFolderError(
                f"results folder {self.folder}: only {free // 2**20} MiB are free, "
                f"{MIN_FREE_BYTES // 2**20} are needed; {REMEDIES[errno.ENOSPC]}."
            )

    def write(self, document: RunDocument, audio: Mapping[str, NDArray[np.float32]] | None = None) -> Path:
        """Keep one run for good and return its file.

        `audio` maps file names (`<name>.flac`) to mono samples [N] at 24 kHz. Audio is written first, so a
        document that can be read has all its files. A run id is written once: documents never change.
        """
        target = self.runs_folder / f"{document.run_id}.json"
        if target.exists():
            raise StoreError(
                f"run {document.run_id} is already recorded in {target}; documents never change."
            )
        try:
            # not pydantic's JSON mode: it would turn a NaN in a free field into a silent null
            text = json.dumps(document.model_dump(), allow_nan=False, ensure_ascii=False, indent=1)
        except (TypeError, ValueError) as error:
            raise StoreError(
                f"run {document.run_id} holds a value that JSON cannot carry: {error}"
            ) from error
        try:
            for name, samples in (audio or {}).items():
                write_audio(self.audio_file(document.run_id, name), samples)
            write_atomic(target, text.encode())
        except OSError as error:
            shutil.rmtree(self.runs_folder / document.run_id, ignore_errors=True)  # clips without a document
            raise self._error("written", error) from error
        return target

    def read(self, run_id: str) -> RunDocument:
        """One run by its id; `UserError` when it is not there, `StoreError` when it cannot be read."""
        path = self.runs_folder / f"{run_id}.json"
        if not path.exists():
            raise UserError(
                f"run {run_id!r} is not in {self.runs_folder}; `labkit results list` lists the runs there."
            )
        return read_document(path)

    def files(self) -> list[Path]:
        """The files of all runs, oldest first; an absent folder holds none."""
        return sorted(path for path in self.runs_folder.glob("*.json") if not path.name.startswith("."))

    def scan(self) -> tuple[list[RunDocument], list[Damaged]]:
        """Every document that can be read, oldest first, and every one that cannot."""
        documents, damaged = [], []
        for path in self.files():
            try:
                documents.append(read_document(path))
            except StoreError as error:
                damaged.append(Damaged(path, str(error)))
        return documents, damaged

    def documents(self) -> list[RunDocument]:
        """Every readable document, oldest first; warns (`DamagedDocumentWarning`) about each other one."""
        documents, damaged = self.scan()
        for item in damaged:
            warnings.warn(item.reason, DamagedDocumentWarning, stacklevel=2)
        return documents

    def audio_file(self, run_id: str, name: str) -> Path:
        """Where a clip of a run lies; refuses names that would leave the run's folder."""
        if Path(name).name != name or not name.endswith(".flac"):
            raise StoreError(
                f"audio name {name!r} of run {run_id}: a plain file name ending in .flac is needed."
            )
        return self.runs_folder / run_id / name

    def write_sweep(self, spec: SweepSpec) -> None:
        """Remember what the sweep of that name asked for last."""
        try:
            write_atomic(self.sweeps_folder / f"{spec.name}.json", spec.model_dump_json(indent=1).encode())
        except OSError as error:
            raise self._error("written", error) from error

    def read_sweep(self, name: str) -> SweepSpec | None:
        """What the sweep asked for; None when it never ran on this store."""
        path = self.sweeps_folder / f"{name}.json"
        if not path.exists():
            return None
        try:
            return SweepSpec.model_validate_json(path.read_bytes())
        except OSError as error:
            raise self._error("read", error) from error
        except ValidationError as error:
            first = error.errors()[0]["msg"]
            raise StoreError(
                f"{path} cannot be read ({first}); delete it and run the sweep again."
            ) from error

    def _error(self, verb: str, error: OSError) -> StoreError:
        remedy = REMEDIES.get(error.errno or 0, "choose another folder with --results or LABKIT_RESULTS")
        return StoreError(f"results folder {self.folder} cannot be {verb} ({error}); {remedy}.")


def read_document(path: Path) -> RunDocument:
    """Read, migrate and validate one file; `StoreError` names the file and what is wrong with it."""
    try:
        values = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
        if not isinstance(values, dict):
            raise StoreError(f"the file holds {type(values).__name__}, not a run document")
        document = RunDocument.model_validate_json(json.dumps(migrate(values)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreError(
            f"{path}: {where}: {first['msg']} ({error.error_count()} problems in all); {_MEND}"
        ) from error
    except ValueError as error:
        raise StoreError(f"{path} is cut off or is no JSON ({error}); {_MEND}") from error
    except (OSError, StoreError) as error:
        raise StoreError(f"{path}: {error}") from error
    if document.run_id != path.stem:
        raise StoreError(f"{path}: the document calls itself {document.run_id!r}; it was renamed or copied")
    return document


def load_wide(folder: Path | str | None = None, *, sweep: str | None = None) -> pd.DataFrame:
    """One row per run: identity, status, and p50/p90/p95/p99 of each measured metric (see `labkit.results.frames`).

    With votes of listeners in the store, their means as well.
    """
    from labkit.results.frames import vote_columns, wide_frame
    from labkit.results.index import wide_rows

    rows, damaged = wide_rows(Store(folder))
    for item in damaged:
        warnings.warn(item.reason, DamagedDocumentWarning, stacklevel=2)
    frame = wide_frame([row for row in rows if sweep is None or row.identity["sweep"] == sweep])
    votes = _votes(Store(folder))
    return frame.join(vote_columns(votes), on="run_id") if votes else frame


def load_long(
    folder: Path | str | None = None, *, sweep: str | None = None, steps: bool = False
) -> pd.DataFrame:
    """One row per number: metric, value, unit, and which run, item and repetition it belongs to.

    `steps` adds the series within each sample (`step_s`), one row per step.
    """
    from labkit.results.frames import long_frame

    documents = [
        document for document in Store(folder).documents() if sweep is None or document.sweep == sweep
    ]
    return long_frame(documents, steps=steps, votes=_votes(Store(folder)))


def _votes(store: Store) -> list[Vote]:
    """What listeners said; warns about each vote that cannot be read."""
    votes, problems = read_votes(store.folder)
    for problem in problems:
        warnings.warn(problem, DamagedDocumentWarning, stacklevel=3)
    return votes


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON; a number is finite or it is null with a reason")
