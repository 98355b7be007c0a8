"""Signals to judge: one real spoken clip, and speech-shaped noise where words do not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

RATE = 24_000


@pytest.fixture(scope="session")
def speech() -> np.ndarray:
    """[N] float32 at 24 kHz: a synthetic voice saying "nine two six five zero eight"."""
    file = Path(__file__).parent / "clips" / "nine_two_six_five_zero_eight.flac"
    audio, rate = soundfile.read(file, dtype="float32")
    assert rate == RATE
    return audio


@pytest.fixture(scope="session")
def noise() -> np.ndarray:
    """[N] one second of quiet noise."""
    return (0.05 * np.random.default_rng(0).standard_normal(RATE)).astype(np.float32)
