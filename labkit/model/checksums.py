"""Hashes of a voice's files: the published ones, and those found on disk (remembered, for files are large)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from labkit.errors import CheckpointError

KNOWN_CHECKSUMS = {
    "Decoder.safetensors": "77aa55e0a977949c4733df3c6f876fa85860d3298cba63295a7bc6901729d4e0",
    "DVAE.safetensors": "1d0b044a8368c0513100a2eca98456b289e6be6a18b7a63be1bcaa315ea874d9",
    "Embed.safetensors": "2ff0be7134934155741b643b74e32fb6bf3eec41257984459b2ed60cdb4c48b0",
    "Vocos.safetensors": "07e5561491cce41f7f90cfdb94b2ff263ff5742c3d89339db99b17ad82cc3f44",
    "gpt/config.json": "0aaa1ecd96c49ad4f473459eb1982fa7ad79fa5de08cde2781bf6ad1f9a0c236",
    "gpt/model.safetensors": "cd0806fd971f52f6a22c923ec64982b305e817bcc41ca83417fcf9141b984a0f",
    "tokenizer/special_tokens_map.json": "bd0ac9d9bb1657996b5c5fbcaa7d80f8de530d01a283da97f89deae5b1b8d011",
    "tokenizer/tokenizer_config.json": "43e9d658b554fa5ee8d8e1d763349323bfef1ed7a89c0794220ab8861387d421",
    "tokenizer/tokenizer.json": "843838a64e121e23e774cc75874c6fe862198d9f7dd43747914633a8fd89c20e",
}
"""SHA-256 of the published ChatTTS files, as its package 0.2.5 lists them."""


class HashMemory:
    """SHA-256 of files, remembered in one JSON file by path, size and modification time."""

    def __init__(self, memory: Path):
        self._memory = memory

    def sha256(self, path: Path) -> str:
        stat = path.stat()
        key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
        known = self._read()
        if key not in known:
            with path.open("rb") as file:
                known[key] = hashlib.file_digest(file, "sha256").hexdigest()
            self._write(known)
        return known[key]

    def _read(self) -> dict[str, str]:
        try:
            return dict(json.loads(self._memory.read_text(encoding="utf-8")))
        except (OSError, ValueError):  # absent, or cut short by a crash: hash again
            return {}

    def _write(self, known: dict[str, str]) -> None:
        partial = self._memory.with_name(f"{self._memory.name}.{os.getpid()}")
        with suppress(OSError):  # a read-only or full cache costs time, not correctness
            self._memory.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_text(json.dumps(known, indent=0), encoding="utf-8")
                partial.replace(self._memory)
            finally:
                partial.unlink(missing_ok=True)


def combined_hash(asset: Path, files: Iterable[str], memory: HashMemory, extra: str = "") -> str:
    """One SHA-256 over names and contents of files, and over `extra`."""
    digest = hashlib.sha256(extra.encode())
    for name in sorted(files):
        digest.update(f"{name}={memory.sha256(asset / name)}\n".encode())
    return digest.hexdigest()


def verify(asset: Path, memory: HashMemory, known: dict[str, str] | None = None) -> None:
    """Compare an asset folder with the published checksums; CheckpointError names the first file that differs."""
    for name, expected in (KNOWN_CHECKSUMS if known is None else known).items():
        path = asset / name
        if not path.is_file():
            raise CheckpointError(f"{path}: missing; fetch the voice again.")
        found = memory.sha256(path)
        if found != expected:
            raise CheckpointError(
                f"{path}: sha256 is {found}, published is {expected}; "
                "fetch it again, or name the folder itself if you changed it on purpose."
            )
