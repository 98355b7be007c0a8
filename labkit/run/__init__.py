"""Carry out one RunSpec, in processes of its own, and leave one document: `run(spec)`.

The journey, one module each:

    request.py    everything a user can get wrong is found here, before any work
    tasks.py      what the parent and its children hand each other in a folder
    process.py    start a child, watch its time and memory, end its whole tree
    prepare.py    child: build artifacts, make the reference clips (both cached)
    measure.py    child: the measured process: load, cold start, scenario, then fidelity
    judge.py      child: quality of the audio, where scorers can cost neither time nor memory of the run
    document.py   what came back, as a `RunDocument`
    parent.py     the order of all that

The parent imports no backend.
"""

from __future__ import annotations

from labkit.run.parent import UNSAVED, longest_run_s, run

__all__ = ["UNSAVED", "longest_run_s", "run"]
