"""Distill-MOS: the package's own number, its segmentation, its direction."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from labkit.quality.audio import to_16k
from labkit.quality.base import Missing
from labkit.quality.distillmos import DistillMos, DistillMosScorer

pytestmark = pytest.mark.skipif(
    isinstance(DistillMosScorer().availability(), Missing), reason="distillmos is not installed"
)


@pytest.fixture(scope="module")
def model() -> DistillMos:
    return DistillMos()


def test_the_package_gives_the_same(model: DistillMos, speech: np.ndarray) -> None:
    """Golden: distillmos 0.9.1, its own forward pass on the same 16 kHz samples."""
    assert model(to_16k(speech, level_dbfs=None)) == pytest.approx(4.212045669555664, abs=1e-4)


def test_a_long_clip_is_the_mean_over_the_published_windows(model: DistillMos, speech: np.ndarray) -> None:
    """Golden: distillmos 0.9.1 on three repetitions (8.9 s), its three windows in one batch."""
    audio = np.concatenate([to_16k(speech, level_dbfs=None)] * 3)
    assert model(audio) == pytest.approx(4.334297180175781, abs=1e-4)


def test_noise_lowers_it_and_gain_does_not(model: DistillMos, speech: np.ndarray) -> None:
    clean = model(to_16k(speech))
    dither = 0.01 * np.random.default_rng(0).standard_normal(speech.size)
    assert model(to_16k(speech * 0.1)) == pytest.approx(clean, abs=0.02)
    assert model(to_16k(speech + dither)) < clean - 0.3


def test_no_stand_in_for_torchaudio_stays_behind(model: DistillMos) -> None:
    stays = sys.modules.get("torchaudio")
    assert stays is None or stays.__spec__ is not None
