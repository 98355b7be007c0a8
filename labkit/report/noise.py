"""Whether the machine had other work while runs were timed: then their wall-clock numbers are too high.

A run on a CPU computes without pause, so its process should get a second of CPU time for each second of latency,
or more with several threads. It gets less when other programs take its core.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from labkit.results.schema import RunDocument

QUIET_SHARE = 0.9  # idle runs of this project's recipes get .97 and more


def core_share(document: RunDocument) -> float | None:
    """CPU seconds for each second of latency, median over measured samples; None off the CPU or without samples."""
    if not document.spec.device.startswith("cpu"):
        return None
    measured = [sample.values for sample in document.samples if sample.phase == "measured"]
    times = [(values.get("cpu_s"), values.get("latency_s")) for values in measured]
    shares = [cpu_s / latency_s for cpu_s, latency_s in times if cpu_s and latency_s]
    return float(np.median(shares)) if shares else None


def disturbed(document: RunDocument) -> bool:
    """Whether a run is known to have waited for its core while it was timed."""
    share = core_share(document)
    return share is not None and share < QUIET_SHARE


def caution(documents: Iterable[RunDocument]) -> str:
    """A sentence about runs that were disturbed; empty when there are none."""
    shares = {document.run_id: (core_share(document), document.spec.recipe.name) for document in documents}
    known = [(share, recipe) for share, recipe in shares.values() if share is not None]
    disturbed = [(share, recipe) for share, recipe in known if share < QUIET_SHARE]
    if not disturbed:
        return ""
    share, recipe = min(disturbed)
    return (
        f"The machine was busy: {len(disturbed)} of {len(known)} runs did not get a whole core while they were timed "
        f"({recipe} got {share:.0%} of one). Their wall-clock numbers are too high, and ratios with them "
        "are of CPU time; run them again on a quiet machine."
    )
