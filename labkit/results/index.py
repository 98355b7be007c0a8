"""`index.parquet`: rows of the wide table, cached so that a large store opens quickly.

A row is used only while its document's size and modification time are unchanged; anything else about the cache
that is odd (absent, damaged, another version) means that documents are read again. Losing it loses nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from labkit.errors import StoreError
from labkit.results.frames import IDENTITY, WideRow, wide_row
from labkit.results.store import Damaged, Store, read_document

INDEX_VERSION = b"1"  # raise it whenever `wide_row` computes something else
_SCHEMA = pa.schema(
    [
        ("file_size", pa.int64()),
        ("file_mtime_ns", pa.int64()),
        *((name, pa.string()) for name in IDENTITY),
        ("numbers", pa.map_(pa.string(), pa.float64())),
        ("reasons", pa.map_(pa.string(), pa.string())),
    ],
    metadata={b"labkit_index": INDEX_VERSION},
)
_Stamp = tuple[int, int]


def wide_rows(store: Store) -> tuple[list[WideRow], list[Damaged]]:
    """The row of every readable document, oldest first, and every document that cannot be read."""
    path = store.folder / "index.parquet"
    cached = _load(path)
    rows: dict[str, tuple[_Stamp, WideRow]] = {}
    damaged = []
    for file in store.files():
        try:
            stamp = _stamp(file)
            known = cached.get(file.stem)
            rows[file.stem] = known if known and known[0] == stamp else (stamp, wide_row(read_document(file)))
        except (OSError, StoreError) as error:
            damaged.append(Damaged(file, str(error)))
    if rows != cached:
        with contextlib.suppress(OSError):  # a read-only store is read without its cache
            _save(path, rows)
    return [row for _, row in rows.values()], damaged


def _stamp(file: Path) -> _Stamp:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _load(path: Path) -> dict[str, tuple[_Stamp, WideRow]]:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException):
        return {}
    if (
        not table.schema.equals(_SCHEMA, check_metadata=False)
        or (table.schema.metadata or {}).get(b"labkit_index") != INDEX_VERSION
    ):
        return {}
    return {
        str(line["run_id"]): (
            (line["file_size"], line["file_mtime_ns"]),
            WideRow({name: line[name] for name in IDENTITY}, dict(line["numbers"]), dict(line["reasons"])),
        )
        for line in table.to_pylist()
    }


def _save(path: Path, rows: dict[str, tuple[_Stamp, WideRow]]) -> None:
    lines = [
        {
            "file_size": stamp[0],
            "file_mtime_ns": stamp[1],
            **row.identity,
            "numbers": list(row.numbers.items()),
            "reasons": list(row.reasons.items()),
        }
        for stamp, row in rows.values()
    ]
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(3)}.tmp")
    try:
        pq.write_table(pa.Table.from_pylist(lines, schema=_SCHEMA), temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
