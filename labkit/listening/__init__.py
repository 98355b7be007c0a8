"""Blind listening: people rate what recipes said, without knowing which is which.

    trials.py    which clips are heard, the trials that test the listener, and the secret key of names
    order.py     the order and the sides, drawn for each listener from the seed
    clips.py     one loudness for all, and the muffled anchor
    page.py      the test as one HTML file that needs no kernel
    panel.py     the test in a notebook
    votes.py     answers -> votes in the results store

Means with two-way intervals, and how far each listener can be trusted, are in `labkit.compare.opinions`. Only these
numbers are opinions: `human_mos` and `human_ab`. Votes lie in the results store (`labkit.results.ratings`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.compare.opinions import listeners, opinions
    from labkit.listening.page import write_page
    from labkit.listening.panel import listen
    from labkit.listening.trials import audible, make_test
    from labkit.listening.votes import import_votes

# the widgets and the audio of one part are not needed by another
_LAZY = {
    "audible": "labkit.listening.trials",
    "make_test": "labkit.listening.trials",
    "write_page": "labkit.listening.page",
    "listen": "labkit.listening.panel",
    "import_votes": "labkit.listening.votes",
    "opinions": "labkit.compare.opinions",
    "listeners": "labkit.compare.opinions",
}

__all__ = ["audible", "import_votes", "listen", "listeners", "make_test", "opinions", "write_page"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(
            f"module 'labkit.listening' has no attribute {name!r}; it has {', '.join(_LAZY)}"
        )
    return getattr(importlib.import_module(_LAZY[name]), name)
