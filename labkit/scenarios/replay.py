"""Replay: every recipe says the same codes, so every recipe does the same number of steps.

This is the truth about speed; what the recipe would have said by itself is the business of `single`.
"""

from __future__ import annotations

from labkit.scenarios.base import Drive


def run(drive: Drive) -> None:
    """Say the reference codes of each text."""
    drive.round_robin(replay=True)
