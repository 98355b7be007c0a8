"""DNSMOS: the published implementation's numbers, and deafness to gain."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import LabError
from labkit.quality import Clip
from labkit.quality.audio import to_16k
from labkit.quality.dnsmos import WEIGHTS, DnsmosModel, DnsmosScorer
from labkit.quality.files import package_folder

pytestmark = pytest.mark.skipif(package_folder("speechmos") is None, reason="speechmos is not installed")


@pytest.fixture(scope="module")
def scorer() -> DnsmosScorer:
    scorer = DnsmosScorer()
    scorer.load()
    return scorer


def test_the_published_implementation_gives_the_same(speech: np.ndarray) -> None:
    """Golden: speechmos 0.0.1.1 with librosa 0.11 on the same 16 kHz samples, two windows of the repeated clip."""
    folder = package_folder("speechmos")
    assert folder is not None
    found = DnsmosModel(folder)(to_16k(speech, level_dbfs=None))
    assert found.overall == pytest.approx(3.128303519541409, abs=2e-5)
    assert found.p808 == pytest.approx(3.765869, abs=2e-5)


def test_a_gain_moves_nothing_and_noise_lowers_both(scorer: DnsmosScorer, speech: np.ndarray) -> None:
    dither = 0.02 * np.random.default_rng(0).standard_normal(speech.size).astype(np.float32)
    clean, quiet, noisy = (
        scorer.score(Clip("a", 0, audio)) for audio in (speech, speech * 0.1, speech + dither)
    )
    for name in ("dnsmos_p808", "dnsmos_ovrl"):
        assert clean[name].value is not None and noisy[name].value is not None
        assert quiet[name].value == pytest.approx(clean[name].value, abs=0.01)
        assert noisy[name].value < clean[name].value - 0.2


def test_a_damaged_network_is_refused(tmp_path) -> None:
    (tmp_path / "dnsmos_models").mkdir()
    for name in WEIGHTS:
        (tmp_path / name).write_bytes(b"not the network")
    with pytest.raises(LabError, match="reinstall"):
        DnsmosModel(tmp_path)
