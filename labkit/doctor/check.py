"""One finding of the doctor: what was looked at, how it stands, and the remedy.

`warn` means that something optional is missing or tight, `fail` that runs will fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]
GIB = 2**30


@dataclass(frozen=True)
class Check:
    """One finding: its name, how it stands, what was found, and the remedy when there is something to mend."""

    name: str
    status: Status
    found: str
    remedy: str = ""
