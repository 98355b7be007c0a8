"""The store: what is written comes back, what is damaged is named, what cannot be kept is refused early."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import ResultsFolderError, StoreError, UserError
from labkit.results import migrate
from labkit.results import store as store_module
from labkit.results.schema import Measures
from labkit.results.store import (
    DamagedDocumentWarning,
    Store,
    default_folder,
    load_long,
    load_wide,
    new_run_id,
)
from labkit.spec import SweepSpec
from tests.results.factory import clip, document, failed

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_a_document_comes_back_equal(tmp_path: Path) -> None:
    store, written = Store(tmp_path), document()
    store.write(written)
    assert store.read(written.run_id) == written
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [f"{written.run_id}.json"]


@given(
    values=st.dictionaries(st.text(min_size=1), finite | st.integers(-(2**53), 2**53) | st.none(), max_size=5)
)
def test_any_finite_numbers_come_back_exactly(values: dict[str, float | int | None]) -> None:
    reasons = {name: "ungemessen — 未测" for name, value in values.items() if value is None}
    written = document(measures=Measures(values=values, reasons=reasons), samples=(), quality=())
    folder = Path("/dev/shm") if os.path.isdir("/dev/shm") else Path("/tmp")
    store = Store(folder / f"labkit-test-{os.getpid()}-{written.run_id}")
    try:
        store.write(written)
        assert store.read(written.run_id).measures.values == values
    finally:
        shutil.rmtree(store.folder)


def test_a_run_is_written_once(tmp_path: Path) -> None:
    store, written = Store(tmp_path), document()
    store.write(written)
    with pytest.raises(StoreError, match="never change"):
        store.write(written)


def test_audio_lies_beside_the_document(tmp_path: Path) -> None:
    store, written, samples = Store(tmp_path), document(), clip()
    store.write(written, audio={"one.flac": samples})
    read, rate = soundfile.read(store.audio_file(written.run_id, "one.flac"), dtype="float32")
    assert rate == 24_000
    np.testing.assert_allclose(read, samples, atol=2**-15)


@pytest.mark.parametrize("name", ["../out.flac", "a/b.flac", "one.wav", ""])
def test_audio_names_stay_inside_the_run_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="plain file name"):
        Store(tmp_path).write(document(), audio={name: clip()})


def test_audio_that_is_not_finite_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    store, written = Store(tmp_path), document()
    with pytest.raises(StoreError, match="finite mono"):
        store.write(written, audio={"one.flac": np.full(10, np.nan, np.float32)})
    assert store.documents() == []


def test_nan_in_free_fields_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="JSON cannot carry"):
        Store(tmp_path).write(document(environment={"load": float("nan")}))


def test_an_unknown_run_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'nope' is not in .*runs"):
        Store(tmp_path).read("nope")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "Unterminated|Expecting|delimiter"),
        (lambda text: "", "Expecting value"),
        (lambda text: "[]", "not a run document"),
        (lambda text: text.replace('"ok"', '"splendid"'), "status"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 99'), "newer than this labkit"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 0'), "no migration"),
        (lambda text: text.replace("11200000000.0", "NaN"), "NaN is not JSON"),
        (lambda text: text.replace('"sweep"', '"swept"'), "sw"),
        (lambda text: "\x00\xff" + text, "utf|Expecting"),
    ],
)
def test_a_damaged_document_is_reported_and_the_others_are_read(tmp_path, damage, reason) -> None:
    store, good, bad = Store(tmp_path), document(), document("ort-fp32")
    store.write(good)
    path = store.write(bad)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="latin-1")
    documents, damaged = store.scan()
    assert documents == [good]
    assert [item.path for item in damaged] == [path]
    with pytest.warns(DamagedDocumentWarning, match=reason):
        assert store.documents() == [good]
    with pytest.warns(
        DamagedDocumentWarning, match="put back an unharmed copy|no migration|newer|not a run document"
    ):
        store.documents()
    with pytest.warns(DamagedDocumentWarning, match=path.name):
        assert list(load_wide(tmp_path)["run_id"]) == [good.run_id]


def test_a_copied_document_is_not_counted_twice(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.write(document())
    shutil.copy(path, path.with_name("copy.json"))
    assert len(store.scan()[0]) == 1
    assert "renamed or copied" in store.scan()[1][0].reason


def test_an_older_schema_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, written = Store(tmp_path), document()
    path = store.write(written)
    old = json.loads(path.read_text())
    old |= {"schema_version": 0, "state": old.pop("status")}
    path.write_text(json.dumps(old))
    monkeypatch.setitem(
        migrate.MIGRATIONS, 0, lambda old: {("status" if k == "state" else k): v for k, v in old.items()}
    )
    assert store.read(written.run_id) == written


def test_an_absent_folder_is_an_empty_store(tmp_path: Path) -> None:
    assert Store(tmp_path / "none").documents() == []
    wide = load_wide(tmp_path / "none")
    assert len(wide) == 0
    assert {"run_id", "status", "recipe", "seed"} <= set(wide.columns)
    assert len(load_long(tmp_path / "none")) == 0
    assert not (tmp_path / "none").exists()


def test_check_writable_leaves_no_trace(tmp_path: Path) -> None:
    Store(tmp_path).check_writable()
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/below", "folder"])
def test_a_file_in_the_place_of_the_folder_is_named_and_is_no_empty_store(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "runs").write_text("not a folder")
    with pytest.raises(ResultsFolderError, match=r"(file|runs) is a file; .*choose another folder") as caught:
        load_wide(tmp_path / place)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("code", "remedy"), [(errno.ENOSPC, "free some disk"), (errno.EROFS, "read-only")])
def test_a_full_or_read_only_disk_names_its_remedy(tmp_path, monkeypatch, code, remedy) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    store = Store(tmp_path)
    with pytest.raises(StoreError, match=remedy):
        store.check_writable()
    with pytest.raises(StoreError, match=remedy):
        store.write(document())
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_nearly_full_disk_is_refused_before_work(tmp_path, monkeypatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2**20))
    with pytest.raises(StoreError, match="only 1 MiB are free"):
        Store(tmp_path).check_writable()


def _write_many(folder: Path, worker: int, count: int) -> None:
    store = Store(folder)
    for _ in range(count):
        store.write(document(samples=(), quality=(), sweep=f"s{worker}"))
        load_wide(folder)


def test_concurrent_writers_and_readers_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write_many, args=(tmp_path, n, 8)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)  # seconds on an idle machine, minutes on a starved one
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = load_wide(tmp_path)
    assert wide["sweep"].value_counts().to_dict() == {"s0": 8, "s1": 8, "s2": 8}
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


def test_ids_sort_by_time_and_never_repeat() -> None:
    ids = [new_run_id("torch-fp32") for _ in range(200)]
    assert len(set(ids)) == 200
    assert [made[:22] for made in ids] == sorted(made[:22] for made in ids)


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_RESULTS", "/elsewhere")
    assert default_folder() == Path("/elsewhere")
    monkeypatch.delenv("LABKIT_RESULTS")
    assert default_folder() == Path("results")


def test_a_sweep_remembers_what_was_asked(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.read_sweep("demo") is None
    asked = SweepSpec(name="demo", recipe=("torch-fp32", "ort-fp32"), baseline="torch-fp32")
    store.write_sweep(asked)
    assert store.read_sweep("demo") == asked
    (tmp_path / "sweeps" / "demo.json").write_text("{")
    with pytest.raises(StoreError, match=r"demo\.json cannot be read \(.*EOF.*\); delete it") as caught:
        store.read_sweep("demo")
    assert "\n" not in str(caught.value)


def test_a_failed_write_leaves_no_clips_without_their_document(tmp_path: Path, monkeypatch) -> None:
    write, store, run = store_module.write_atomic, Store(tmp_path), document()

    def full(target: Path, content: bytes) -> None:
        if target.suffix == ".json":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(target, content)

    monkeypatch.setattr(store_module, "write_atomic", full)
    with pytest.raises(StoreError, match="free some disk space"):
        store.write(run, audio={"a.flac": clip()})
    assert list(store.runs_folder.iterdir()) == []


def test_failed_runs_are_documents_like_any_other(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(failed("ort-fp32", "oom", message="killed at 4 GB"))
    row = load_wide(tmp_path).iloc[0]
    assert (row["status"], row["failure_message"]) == ("oom", "killed at 4 GB")
