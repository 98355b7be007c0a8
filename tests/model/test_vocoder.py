from __future__ import annotations

import math

import torch

from labkit.model.vocoder import MAX_MAGNITUDE, Vocoder
from tests.conftest import TINY


def test_audio_is_a_hop_shorter_than_its_frames() -> None:
    vocoder = Vocoder(TINY.vocoder, TINY.audio)
    assert vocoder(torch.randn(2, 100, 14)).shape == (2, 256 * 13)


def test_magnitude_is_clipped_and_phase_kept() -> None:
    vocoder = Vocoder(TINY.vocoder, TINY.audio)
    with torch.no_grad():
        vocoder.out.weight.zero_()
        vocoder.out.bias[:513] = 50.0  # e**50 is far above the clip
        vocoder.out.bias[513:] = math.pi / 3
    real, imag = vocoder.spectrum(torch.randn(1, 100, 4))
    assert torch.allclose(torch.hypot(real, imag), torch.full_like(real, MAX_MAGNITUDE), rtol=1e-5)
    assert torch.allclose(torch.atan2(imag, real), torch.full_like(real, math.pi / 3), atol=1e-5)


def test_each_frame_hears_a_bounded_neighbourhood() -> None:
    """What streaming relies on: kernels 7 in the embedding and in both blocks reach 9 frames in all."""
    torch.manual_seed(0)
    vocoder = Vocoder(TINY.vocoder, TINY.audio)
    mel = torch.randn(1, 100, 60)
    other = mel.clone()
    other[:, :, 30] += 1.0
    differs = (vocoder.spectrum(mel)[0] - vocoder.spectrum(other)[0]).abs().amax((0, 1)) > 0
    assert differs.nonzero().min() == 21 and differs.nonzero().max() == 39
