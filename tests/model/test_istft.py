from __future__ import annotations

import pytest
import torch

from labkit.model.features import hann_window
from labkit.model.istft import InverseStft


@pytest.mark.parametrize(
    ("n_fft", "hop", "frames"), [(1024, 256, 40), (1024, 256, 3), (64, 16, 9), (64, 32, 5)]
)
def test_equals_torch(n_fft: int, hop: int, frames: int) -> None:
    torch.manual_seed(0)
    spectrum = torch.randn(2, n_fft // 2 + 1, frames, dtype=torch.complex64)
    expected = torch.istft(spectrum, n_fft, hop, n_fft, hann_window(n_fft), center=True)
    found = InverseStft(n_fft, hop)(spectrum.real, spectrum.imag)
    assert found.shape == (2, hop * (frames - 1))
    assert (found - expected).abs().max() < 1e-6


def test_inverts_the_transform() -> None:
    wave = torch.randn(1, 5120)
    s = torch.stft(wave, 1024, 256, 1024, hann_window(1024), center=True, return_complex=True)
    assert torch.allclose(InverseStft(1024, 256)(s.real, s.imag), wave, atol=1e-5)


def test_a_hop_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="hop=300"):
        InverseStft(1024, 300)


def test_stores_nothing_in_a_checkpoint() -> None:
    assert InverseStft(64, 16).state_dict() == {}
