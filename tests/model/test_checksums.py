from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from labkit.errors import CheckpointError
from labkit.model import layout
from labkit.model.checksums import KNOWN_CHECKSUMS, HashMemory, combined_hash, verify


def test_every_published_file_has_a_checksum() -> None:
    assert set(KNOWN_CHECKSUMS) == {*layout.WEIGHT_FILES, *layout.TOKENIZER_FILES, layout.GPT_CONFIG}
    assert all(len(value) == 64 for value in KNOWN_CHECKSUMS.values())


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file, memory = tmp_path / "f", HashMemory(tmp_path / "cache" / "hashes.json")
    file.write_bytes(b"one")
    os.utime(file, ns=(1, 1))
    assert memory.sha256(file) == hashlib.sha256(b"one").hexdigest()
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))  # same size and time: the memory cannot know, and answers without reading
    assert memory.sha256(file) == hashlib.sha256(b"one").hexdigest()
    os.utime(file, ns=(2, 2))
    assert memory.sha256(file) == hashlib.sha256(b"two").hexdigest()


def test_a_damaged_or_unwritable_memory_costs_only_time(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x")
    damaged = tmp_path / "hashes.json"
    damaged.write_text('{"cut')
    expected = hashlib.sha256(b"x").hexdigest()
    assert HashMemory(damaged).sha256(file) == expected
    assert HashMemory(file / "not-a-folder" / "h.json").sha256(file) == expected


def test_the_combined_hash_sees_names_contents_and_extra(tmp_path: Path) -> None:
    memory = HashMemory(tmp_path / "h.json")
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    base = combined_hash(tmp_path, ["a", "b"], memory)
    assert base == combined_hash(tmp_path, ["b", "a"], memory)
    assert base != combined_hash(tmp_path, ["a"], memory)
    assert base != combined_hash(tmp_path, ["a", "b"], memory, extra="x")
    (tmp_path / "a").write_text("changed")
    assert base != combined_hash(tmp_path, ["a", "b"], memory)


def test_verify_names_the_file_and_both_sums(tmp_path: Path) -> None:
    memory = HashMemory(tmp_path / "h.json")
    (tmp_path / "w").write_bytes(b"data")
    good = hashlib.sha256(b"data").hexdigest()
    verify(tmp_path, memory, {"w": good})
    with pytest.raises(CheckpointError, match=f"w: sha256 is {good}, published is 00"):
        verify(tmp_path, memory, {"w": "0" * 64})
    with pytest.raises(CheckpointError, match="gone: missing"):
        verify(tmp_path, memory, {"gone": good})
