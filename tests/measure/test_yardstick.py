"""The yardstick is the same work each time, long enough for the clock, short beside an utterance, and nobody else's."""

from __future__ import annotations

import threading
import warnings
from statistics import median

import numpy as np
import pytest

from labkit.measure import yardstick
from labkit.measure.yardstick import yardstick_s


def test_it_takes_some_hundredths_of_a_second() -> None:
    yardstick_s()
    assert 0.003 < median(yardstick_s() for _ in range(5)) < 0.5


def test_twice_the_rounds_take_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = []
    for _ in range(7):
        monkeypatch.setattr(yardstick, "ROUNDS", 6)
        once = yardstick_s()
        monkeypatch.setattr(yardstick, "ROUNDS", 12)
        ratios.append(yardstick_s() / once)
    assert 1.6 < median(ratios) < 2.4


def test_a_thread_that_spins_beside_it_is_not_counted() -> None:
    """ONNX Runtime's pool spins for a while after each step, which once made the yardstick of two threads four times
    as long."""
    done = threading.Event()

    def spin() -> None:
        grid = np.ones((400, 400))
        while not done.is_set():
            np.sqrt(grid, out=grid)  # without the interpreter's lock

    alone = median(yardstick_s() for _ in range(5))
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        beside = median(yardstick_s() for _ in range(5))
    finally:
        done.set()
        thread.join()
    assert beside < 1.7 * alone


def test_it_visits_many_places_and_warns_of_none() -> None:
    yardstick._calls.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yardstick_s()
    names = [getattr(function, "__name__", "?") for function, *_ in yardstick._calls()]
    assert len(names) > 900 and len(set(names)) > 120
    stretches = [names[start : start + 100] for start in range(0, len(names) - 100, 50)]
    assert min(len(set(stretch)) for stretch in stretches) >= 10  # the tour goes on between the loops
