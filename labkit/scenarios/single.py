"""Single: free-running, one text at a time, as a user would hear it.

The seed is the run's, the same in every repetition: repetitions measure noise of the machine, not of the draw.
"""

from __future__ import annotations

from labkit.scenarios.base import Drive


def run(drive: Drive) -> None:
    """Draw the codes of each text."""
    drive.round_robin(replay=False)
