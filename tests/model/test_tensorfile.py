from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch

from labkit.errors import CheckpointError
from labkit.model.tensorfile import TensorFile, write_tensors


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    path = tmp_path / "w.safetensors"
    save_file(
        {
            "wide": generator.standard_normal((5, 7)).astype(np.float32),
            "half": generator.standard_normal((3, 4)).astype(np.float16),
            "double": generator.standard_normal(6),
            "count": np.arange(4),
            "empty": np.zeros((0, 3), np.float32),
        },
        path,
    )
    return path


def test_reads_what_the_library_wrote(stored: Path) -> None:
    expected, file = load_file(stored), TensorFile(stored)
    for name in ("wide", "half", "double", "empty"):
        read = file.read(name, expected[name].shape)
        assert read.dtype == np.float32 and np.array_equal(read, expected[name].astype(np.float32))
    assert "wide" in file and "narrow" not in file


def test_reads_bfloat16(tmp_path: Path) -> None:
    values = torch.randn(4, 5).bfloat16()
    save_torch({"b": values}, tmp_path / "b.safetensors")
    read = TensorFile(tmp_path / "b.safetensors").read("b", (4, 5))
    assert np.array_equal(read, values.float().numpy())


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    tensors = {"a": np.ones((2, 3), np.float32) / 3, "b": np.arange(5, dtype=np.float32)}
    path = tmp_path / "deep" / "w.safetensors"
    write_tensors(path, {"a": ("F16", (2, 3)), "b": ("F32", (5,))}, lambda name: tensors[name])
    loaded = load_file(path)
    assert loaded["a"].dtype == np.float16 and np.array_equal(loaded["a"], tensors["a"].astype(np.float16))
    assert np.array_equal(loaded["b"], tensors["b"])
    assert [p.name for p in path.parent.iterdir()] == ["w.safetensors"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_tensors(path, {"a": ("F32", (1,))}, lambda _: np.ones(1, np.float32))

    def interrupted(name: str) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_tensors(path, {"a": ("F32", (1,))}, interrupted)
    assert TensorFile(path).read("a", (1,))[0] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["w.safetensors"]


def test_a_float32_view_is_mapped_and_read_only(stored: Path) -> None:
    file = TensorFile(stored)
    view = file.view("wide", (5, 7))
    assert isinstance(view, np.memmap) and np.array_equal(view, load_file(stored)["wide"])
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 0
    assert file.view("half", (3, 4)).dtype == np.float32


def test_missing_misshapen_and_mistyped_tensors_are_named(stored: Path) -> None:
    file = TensorFile(stored)
    with pytest.raises(CheckpointError, match=r"'other' is missing \(expected shape \(2,\)\)"):
        file.read("other", (2,))
    with pytest.raises(CheckpointError, match=r"'wide' has shape \(5, 7\), expected \(7, 5\)"):
        file.read("wide", (7, 5))
    with pytest.raises(CheckpointError, match="'count' holds I64"):
        file.read("count", (4,))


@pytest.mark.parametrize("keep", [0, 5, 8, 60, -1, -40])
def test_a_truncated_file_is_refused_when_opened(stored: Path, keep: int) -> None:
    data = stored.read_bytes()
    stored.write_bytes(data[:keep])
    with pytest.raises(CheckpointError, match=r"w\.safetensors.*fetch it again"):
        TensorFile(stored)


def test_a_pickle_is_refused_under_either_name(tmp_path: Path) -> None:
    under_its_own = tmp_path / "w.pt"
    under_its_own.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(CheckpointError, match=r"only \.safetensors"):
        TensorFile(under_its_own)
    disguised = tmp_path / "w.safetensors"
    for write in (
        lambda: disguised.write_bytes(pickle.dumps(list(range(99)))),
        lambda: torch.save({}, disguised),
    ):
        write()
        with pytest.raises(CheckpointError, match="pickle"):
            TensorFile(disguised)


def test_headers_that_lie_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    for entry in (
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1]},
        {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]},
    ):
        header = json.dumps({"a": entry}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 8)
        with pytest.raises(CheckpointError, match="'a'"):
            TensorFile(path)
    path.write_bytes(struct.pack("<Q", 4) + b"{no}" + b"\0" * 8)
    with pytest.raises(CheckpointError, match="header is damaged"):
        TensorFile(path)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"gone\.safetensors: cannot be read"):
        TensorFile(tmp_path / "gone.safetensors")
