"""A grid of runs, each one a notebook executed by papermill in a process of its own.

    plan.py       what the sweep asks for: every name checked, what the store already has set aside
    driver.py     run what is left, one after the other; a row for every run, whatever happens to it
    executor.py   where a notebook runs; here: a child process of this machine, watched from outside
    worker.py     the child: one notebook, one exit code
    notebook.py   papermill with its sharp edges covered: checked parameters, private kernel sockets, whole files

Interrupted, a sweep goes on where it stopped: a run counts as done when the store holds it as `ok` under the same
sweep name, the same work hash and the same machine class.
"""

from __future__ import annotations

from labkit.sweep.driver import SweepResult, sweep
from labkit.sweep.executor import Executor, LocalExecutor

__all__ = ["Executor", "LocalExecutor", "SweepResult", "sweep"]
