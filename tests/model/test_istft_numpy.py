from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.model.istft import InverseStft
from labkit.model.istft_numpy import inverse_stft


@pytest.mark.parametrize(("n_fft", "hop"), [(1024, 256), (64, 32), (48, 12)])
@pytest.mark.parametrize("frames", [2, 9])
def test_equals_the_transform_inside_the_network(n_fft: int, hop: int, frames: int) -> None:
    spectrum = torch.randn(2, 3, n_fft // 2 + 1, frames, generator=torch.Generator().manual_seed(0))
    wanted = InverseStft(n_fft, hop)(*spectrum).numpy()
    found = inverse_stft(*spectrum.numpy(), hop)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)
