"""Safetensors files read and written one tensor at a time, in NumPy.

The format: eight bytes of header length, a JSON header (name -> dtype, shape, byte range), then the data. Reading
goes straight into the caller's memory, so loading costs no second copy and no mapped pages; writing streams, so a
voice larger than memory can be made. Everything that could be wrong with a file is checked when it is opened.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from labkit.errors import CheckpointError

FloatArray = NDArray[np.float32]

_MAX_HEADER = 100 * 2**20
_ITEM_SIZE = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
_NUMPY = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
_CHUNK = 4 * 2**20  # elements converted at a time when the stored type is not float32


@dataclass(frozen=True)
class Entry:
    """One tensor of a file: where its bytes are, from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class TensorFile:
    """An opened and checked safetensors file; CheckpointError names the file and what is wrong with it."""

    def __init__(self, path: Path):
        self.path = path
        self.entries = _read_header(path)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def entry(self, name: str, shape: tuple[int, ...]) -> Entry:
        """The entry of a tensor that must be there, with that shape and a float type."""
        found = self.entries.get(name)
        if found is None:
            raise CheckpointError(f"{self.path}: tensor {name!r} is missing (expected shape {shape}).")
        if found.shape != shape:
            raise CheckpointError(
                f"{self.path}: tensor {name!r} has shape {found.shape}, expected {shape}; "
                "the file belongs to a voice of other sizes."
            )
        if found.dtype not in (*_NUMPY, "BF16"):
            raise CheckpointError(f"{self.path}: tensor {name!r} holds {found.dtype}, expected floats.")
        return found

    def read_into(self, name: str, out: FloatArray) -> None:
        """Read a tensor of out's shape into `out` (C-contiguous float32), converting if need be."""
        entry = self.entry(name, out.shape)
        flat = out.reshape(-1)
        with self.path.open("rb") as file:
            file.seek(entry.offset)
            if entry.dtype == "F32":
                _fill(file.readinto(flat.data) if flat.size else 0, flat.nbytes, self.path)
                return
            for start in range(0, flat.size, _CHUNK):
                part = flat[start : start + _CHUNK]
                part[:] = _as_float32(_read_array(file, entry.dtype, part.size, self.path), entry.dtype)

    def read(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        out = np.empty(shape, np.float32)
        self.read_into(name, out)
        return out

    def view(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        """A read-only array: mapped from the file when that holds float32, else a converted copy."""
        entry = self.entry(name, shape)
        if entry.dtype != "F32":
            return self.read(name, shape)
        return np.memmap(self.path, np.float32, mode="r", offset=entry.offset, shape=shape)


def write_tensors(
    path: Path, specs: Mapping[str, tuple[str, tuple[int, ...]]], produce: Callable[[str], FloatArray]
) -> None:
    """Write the tensors that `specs` names (dtype "F32" or "F16", shape), asking `produce` for one at a time.

    The file appears under its name only when it is whole.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (dtype, shape) in specs.items():
        end = offset + math.prod(shape) * _ITEM_SIZE[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name, (dtype, shape) in specs.items():
                tensor = produce(name)
                if tensor.shape != shape:
                    raise ValueError(f"{path}: {name!r} has shape {tensor.shape}, announced {shape}")
                file.write(np.ascontiguousarray(tensor, _NUMPY[dtype]).data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _read_header(path: Path) -> dict[str, Entry]:
    if path.suffix != ".safetensors":
        raise CheckpointError(
            f"{path}: only .safetensors weights are read; pickled ones can run code. Convert it."
        )
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            first = file.read(8)
            length = struct.unpack("<Q", first)[0] if len(first) == 8 else _MAX_HEADER + 1
            if length > min(_MAX_HEADER, size - 8):
                if first[:4] == b"PK\x03\x04" or first[:1] == b"\x80":
                    raise CheckpointError(f"{path}: a pickle under a safetensors name; it is never opened.")
                raise CheckpointError(f"{path}: not a whole safetensors file ({size} bytes); fetch it again.")
            header = json.loads(file.read(length))
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CheckpointError(f"{path}: its header is damaged ({error}); fetch it again.") from error
    entries = {
        name: _entry(path, name, raw, 8 + length) for name, raw in header.items() if name != "__metadata__"
    }
    needed = max((e.offset + e.count * _ITEM_SIZE[e.dtype] for e in entries.values()), default=8 + length)
    if size < needed:
        raise CheckpointError(f"{path}: truncated: {size} bytes, {needed} expected; fetch it again.")
    return entries


def _entry(path: Path, name: str, raw: dict[str, Any], data_start: int) -> Entry:
    try:
        begin, end = raw["data_offsets"]
        entry = Entry(str(raw["dtype"]), tuple(raw["shape"]), data_start + begin)
        whole = begin >= 0 and end - begin == entry.count * _ITEM_SIZE[entry.dtype]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: the header's entry for {name!r} is damaged; fetch it again."
        ) from error
    if not whole:
        raise CheckpointError(f"{path}: tensor {name!r} does not fill its bytes; fetch the file again.")
    return entry


def _read_array(file: BinaryIO, dtype: str, count: int, path: Path) -> NDArray[np.generic]:
    kind = np.uint16 if dtype == "BF16" else _NUMPY[dtype]
    array = np.fromfile(file, kind, count)
    _fill(array.size, count, path)
    return array


def _as_float32(array: NDArray[np.generic], dtype: str) -> FloatArray:
    if dtype == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return array.astype(np.float32)


def _fill(got: int, expected: int, path: Path) -> None:
    if got != expected:
        raise CheckpointError(f"{path}: the file ended early ({got} of {expected}); fetch it again.")
