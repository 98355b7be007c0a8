"""The yardstick is the same work each time, long enough for the clock and short beside an utterance."""

from __future__ import annotations

from statistics import median

import pytest

from labkit.measure import yardstick
from labkit.measure.yardstick import yardstick_s


def test_it_takes_some_hundredths_of_a_second() -> None:
    yardstick_s()
    assert 0.003 < median(yardstick_s() for _ in range(5)) < 0.5


def test_twice_the_rounds_take_twice_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = []
    for _ in range(7):
        monkeypatch.setattr(yardstick, "ROUNDS", 600)
        once = yardstick_s()
        monkeypatch.setattr(yardstick, "ROUNDS", 1200)
        ratios.append(yardstick_s() / once)
    assert 1.6 < median(ratios) < 2.4
