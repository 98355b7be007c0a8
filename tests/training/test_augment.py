"""Variants say the same at another place in time; boundaries and codes follow."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.training.augment import moved, variants
from labkit.training.corpus import SAMPLE_RATE, SAMPLES_PER_STEP, Clip, Item

CLIP = Clip(Item(0, "a", "train", "one two", 1.0), np.linspace(0.1, 0.2, 3000, dtype=np.float32))


def test_moving_shifts_audio_and_boundaries_alike() -> None:
    clip, boundaries = moved(CLIP, [(0.0, 0.05), (0.05, 0.1)], 240, 0.0)
    assert not clip.audio[:240].any()
    np.testing.assert_array_equal(clip.audio[240:], CLIP.audio)
    assert boundaries == [(0.01, pytest.approx(0.06)), (pytest.approx(0.06), pytest.approx(0.11))]


def test_gain_is_in_decibels() -> None:
    louder, _ = moved(CLIP, None, 0, 6.0206)
    np.testing.assert_allclose(louder.audio, 2 * CLIP.audio, rtol=1e-4)


def test_variants_start_at_different_parts_of_a_step() -> None:
    made = list(variants([(CLIP, [(0.0, 0.1)])], 4, seed=1))
    starts = [round(boundaries[0][0] * SAMPLE_RATE) for _, boundaries in made]
    assert len(made) == 4
    assert [start // (SAMPLES_PER_STEP // 4) for start in starts] == [0, 1, 2, 3]
    again = list(variants([(CLIP, None)], 4, seed=1))
    assert all((a.audio == b.audio).all() for (a, _), (b, _) in zip(made, again, strict=True))
