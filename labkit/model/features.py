"""Wave -> log-mel, the representation between decoder and vocoder.

n_fft 1024, hop 256, centre padding (reflect), periodic Hann window, magnitude (power 1), 100 HTK mels without
area normalization from 0 Hz to Nyquist, natural logarithm clipped at 1e-5: what ChatTTS's Vocos was trained on.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from labkit.model.config import AudioConfig

LOG_FLOOR = 1e-5


def _hz_to_mel(hz: float) -> float:
    """HTK's mel scale: 2595 log10(1 + f/700)."""
    return 2595.0 * math.log10(1.0 + hz / 700.0)


@lru_cache(maxsize=8)
def mel_filterbank(audio: AudioConfig = AudioConfig()) -> Tensor:  # noqa: B008 (frozen)
    """Triangular filters with peak 1: [n_fft/2 + 1, n_mels] float32, HTK spacing, no area normalization."""
    nyquist = audio.sample_rate / 2
    bins = torch.linspace(0, nyquist, audio.n_fft // 2 + 1)
    mels = torch.linspace(0.0, _hz_to_mel(nyquist), audio.n_mels + 2)
    edges = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    width = edges[1:] - edges[:-1]
    slopes = edges[None, :] - bins[:, None]  # [bins, n_mels + 2]
    rising = -slopes[:, :-2] / width[:-1]
    falling = slopes[:, 2:] / width[1:]
    return torch.clamp(torch.minimum(rising, falling), min=0.0)


@lru_cache(maxsize=8)
def hann_window(n: int) -> Tensor:
    """The periodic Hann window of `n` samples, float32."""
    return torch.hann_window(n)


def magnitude(wave: Tensor, n_fft: int, hop: int) -> Tensor:
    """Magnitude spectrogram, differentiable: [B, N] -> [B, n_fft/2 + 1, 1 + N // hop].

    Raises RuntimeError (from torch) when N is not longer than n_fft/2, which reflect padding needs.
    """
    window = hann_window(n_fft).to(wave.device)
    spectrum = torch.stft(
        wave, n_fft, hop, n_fft, window, center=True, pad_mode="reflect", return_complex=True
    )
    return spectrum.abs()


def log_mel(wave: Tensor, audio: AudioConfig = AudioConfig()) -> Tensor:  # noqa: B008 (frozen)
    """Natural-log mel spectrogram: wave [B, N] at `audio.sample_rate` -> [B, n_mels, 1 + N // hop]."""
    bank = mel_filterbank(audio).to(wave.device)
    mel = bank.T @ magnitude(wave, audio.n_fft, audio.hop)
    return torch.log(torch.clip(mel, min=LOG_FLOOR))
