"""From older run documents to the present schema: one function per version step.

It works on plain dictionaries, before validation. Documents on disk are never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.errors import StoreError
from labkit.results.schema import SCHEMA_VERSION

Plain = dict[str, Any]
# version -> the function that makes the next version of it; a new schema adds its line here
MIGRATIONS: dict[int, Callable[[Plain], Plain]] = {}


def migrate(values: Plain) -> Plain:
    """Bring a document to the present schema; `StoreError` when its version is unknown or newer."""
    version = values.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise StoreError(f"schema_version is {version!r}, not a whole number")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"schema {version} is newer than this labkit's {SCHEMA_VERSION}; update labkit to read it"
        )
    while version < SCHEMA_VERSION:
        if version not in MIGRATIONS:
            raise StoreError(f"no migration leads from schema {version} to {version + 1}")
        values = {**MIGRATIONS[version](values), "schema_version": version + 1}
        version += 1
    return values
