"""What every description is: immutable, strict, and known by the hash of its content."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel, ConfigDict


class FrozenSpec(BaseModel):
    """Base of all descriptions: immutable, strict, hashable by content."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def content_hash(self) -> str:
        """sha256 of the canonical JSON: equal specs have equal hashes on every machine."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
