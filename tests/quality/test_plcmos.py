"""PLCMOS: the package's own number for the same raters, one score for one clip, its direction."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.quality.audio import to_16k
from labkit.quality.base import Missing
from labkit.quality.plcmos import PlcMos, PlcMosScorer, features

pytestmark = pytest.mark.skipif(
    isinstance(PlcMosScorer().availability(), Missing), reason="speechmos is not installed"
)


@pytest.fixture(scope="module")
def model() -> PlcMos:
    return PlcMos()


def test_the_published_implementation_gives_the_same(model: PlcMos, speech: np.ndarray) -> None:
    """Golden: speechmos 0.0.1.1's own features and network, with the raters of seed 0."""
    assert model(to_16k(speech, level_dbfs=None)) == pytest.approx(4.68485, abs=2e-4)


def test_digital_silence_is_floored_and_finite(speech: np.ndarray) -> None:
    """Golden: the published floor, natural log of the smallest power above zero less 27.6, over 20."""
    heard = features(np.concatenate([np.zeros(3000, np.float32), to_16k(speech)]))
    assert np.isfinite(heard).all()
    assert heard[2].max() == pytest.approx(heard[heard > heard[2, 0]].min() - 1.3816, abs=1e-3)
    assert np.isfinite(features(np.zeros(1000, np.float32))).all()


def test_one_clip_has_one_score_and_gaps_lower_it(model: PlcMos, speech: np.ndarray) -> None:
    whole = model(to_16k(speech))
    gappy = speech.copy()
    for start in range(6000, speech.size - 1200, 12_000):
        gappy[start : start + 1200] = 0
    assert PlcMos()(to_16k(speech)) == whole
    assert model(to_16k(speech * 0.1)) == pytest.approx(whole, abs=0.02)
    assert model(to_16k(gappy)) < whole - 0.1
