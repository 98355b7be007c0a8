"""The index is a cache: it makes reading cheap, never different, and losing it loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from labkit.results import index
from labkit.results.store import Store, load_wide
from tests.results.factory import document, failed


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path)
    for made in (document(), failed("ort-fp32"), document("upstream")):
        store.write(made)
    return store


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    read: list[Path] = []
    original = index.read_document
    monkeypatch.setattr(index, "read_document", lambda path: (read.append(path), original(path))[1])
    return read


def test_the_cached_table_equals_the_fresh_one(store: Store) -> None:
    fresh = load_wide(store.folder)
    cached = load_wide(store.folder)
    assert (store.folder / "index.parquet").exists()
    pd.testing.assert_frame_equal(fresh, cached)


def test_unchanged_documents_are_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    load_wide(store.folder)
    read = _reads(monkeypatch)
    load_wide(store.folder)
    assert read == []
    added = store.write(document("torch-bf16"))
    assert len(load_wide(store.folder)) == 4
    assert read == [added]


def test_a_changed_document_is_read_again(store: Store) -> None:
    load_wide(store.folder)
    path = store.files()[0]
    path.write_text(path.read_text().replace("Example CPU", "Sample CPU"))
    os.utime(path, ns=(1, 1))
    path.write_text(path.read_text().replace('"sweep": "demo"', '"sweep": "mine"'))
    assert set(load_wide(store.folder)["sweep"]) == {"demo", "mine"}


def test_a_removed_document_leaves_the_table(store: Store) -> None:
    load_wide(store.folder)
    store.files()[0].unlink()
    assert len(load_wide(store.folder)) == 2


@pytest.mark.parametrize("content", [b"", b"not parquet", b"PAR1 cut off PAR1"])
def test_a_damaged_index_is_ignored_and_rebuilt(store: Store, content: bytes) -> None:
    path = store.folder / "index.parquet"
    path.write_bytes(content)
    assert len(load_wide(store.folder)) == 3
    assert pq.read_table(path).num_rows == 3


def test_an_index_of_another_version_is_ignored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    load_wide(store.folder)
    monkeypatch.setattr(index, "INDEX_VERSION", b"2")
    read = _reads(monkeypatch)
    load_wide(store.folder)
    assert len(read) == 3


def test_a_store_that_cannot_be_written_is_still_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(index, "_save", refuse)
    assert len(load_wide(store.folder)) == 3
    assert not (store.folder / "index.parquet").exists()
