"""In which order a listener hears the trials, and on which side each clip of a pair is.

Both are drawn from the test's seed and the listener's name, so an interrupted test goes on as it began, and no two
listeners hear the same order. `page.js` draws in its own way: what counts is that nobody can guess.
"""

from __future__ import annotations

import zlib

import numpy as np

from labkit.listening.trials import ListeningTest, Trial


def ordered(test: ListeningTest, rater: str) -> list[Trial]:
    """The trials in this listener's order, with the clips of each pair in the order of its sides: A, then B."""
    rng = np.random.default_rng([test.seed, zlib.crc32(rater.encode()), zlib.crc32(test.id.encode())])
    trials = [test.trials[i] for i in rng.permutation(len(test.trials))]
    swapped = rng.random(len(trials)) < 0.5
    return [
        Trial(trial.id, trial.clips[::-1] if swap else trial.clips, trial.item, trial.anchor)
        for trial, swap in zip(trials, swapped, strict=True)
    ]
