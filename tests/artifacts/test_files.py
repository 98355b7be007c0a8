from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from labkit.artifacts.files import MANIFEST, ArtifactFolder, content_hash
from labkit.errors import ArtifactError


def put(store: ArtifactFolder, key: str, text: str = "weights") -> dict:
    with store.lock(key), store.filling(key) as folder:
        (folder / "model.onnx").write_text(text)
        return store.publish(key, folder, {"stage": "gpt"})


def test_what_is_published_is_found_with_its_hashes(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    assert store.find("k") == (None, "")
    manifest = put(store, "k")
    assert store.find("k") == (manifest, "")
    assert manifest["files"]["model.onnx"]["size_bytes"] == 7
    assert manifest["content_hash"] == "k"


@pytest.mark.parametrize("damage", ["same-size", "truncated", "missing", "no-manifest", "bad-manifest"])
def test_damage_is_noticed_and_named(tmp_path: Path, damage: str) -> None:
    store = ArtifactFolder(tmp_path)
    put(store, "k")
    model, manifest = store.path("k") / "model.onnx", store.path("k") / MANIFEST
    {
        "same-size": lambda: model.write_text("weightz"),
        "truncated": lambda: model.write_text("we"),
        "missing": model.unlink,
        "no-manifest": manifest.unlink,
        "bad-manifest": lambda: manifest.write_text('{"files": 3}'),
    }[damage]()
    found, problem = store.find("k")
    assert found is None
    assert (MANIFEST if "manifest" in damage else "model.onnx") in problem
    put(store, "k")
    assert store.find("k")[1] == ""


def test_what_is_not_published_leaves_nothing(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), store.filling("k") as folder:
        (folder / "half").write_text("x")
        1 / 0  # noqa: B018
    assert list(store.root.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    for name in (".k-abc", ".other-abc"):
        (store.root / name).mkdir(parents=True)
        (store.root / name / "half").write_text("x")
    put(store, "k")
    assert {path.name for path in store.root.iterdir() if path.is_dir()} == {"k", ".other-abc"}


def test_the_hash_depends_on_values_and_not_on_order() -> None:
    assert content_hash({"a": 1, "b": {"c": 2, "d": 3}}) == content_hash({"b": {"d": 3, "c": 2}, "a": 1})
    assert content_hash({"a": 1}) != content_hash({"a": 2})


def test_a_folder_that_cannot_be_made_is_named_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ArtifactFolder(tmp_path / "file")
    with pytest.raises(ArtifactError, match=r"file/artifacts.*LABKIT_CACHE"), store.lock("k"):
        pass


def test_a_full_disk_is_named_with_a_remedy(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    with pytest.raises(ArtifactError, match=r"No space left.*LABKIT_CACHE"), store.filling("k"):
        raise OSError(28, os.strerror(28))
    assert list(store.root.iterdir()) == []


def test_a_makers_own_failure_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    with pytest.raises(FileNotFoundError, match="g\\+\\+"), store.filling("k"):
        raise FileNotFoundError(2, os.strerror(2), "g++")
    assert list(store.root.iterdir()) == []


def test_the_manifest_is_plain_json(tmp_path: Path) -> None:
    store = ArtifactFolder(tmp_path)
    manifest = put(store, "k")
    assert json.loads((store.path("k") / MANIFEST).read_text()) == manifest
