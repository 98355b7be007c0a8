from __future__ import annotations

import math

import torch

from labkit.model.config import AudioConfig
from labkit.model.features import LOG_FLOOR, hann_window, log_mel, magnitude, mel_filterbank


def test_frames_are_one_more_than_hops() -> None:
    assert log_mel(torch.zeros(2, 5120)).shape == (2, 100, 21)


def test_silence_is_the_floor() -> None:
    assert torch.all(log_mel(torch.zeros(1, 4096)) == math.log(LOG_FLOOR))


def test_filters_follow_the_htk_scale() -> None:
    bank = mel_filterbank()
    assert bank.shape == (513, 100)
    peaks = bank.argmax(0) * 24_000 / 1024
    top = 2595 * math.log10(1 + 12_000 / 700)
    expected = torch.tensor([700 * (10 ** ((top * (i + 1) / 101) / 2595) - 1) for i in range(100)])
    assert torch.all((peaks - expected).abs() <= 24_000 / 1024)
    assert bank.max() <= 1.0 and bank.min() >= 0.0


def test_a_tone_lands_in_its_mel_at_the_height_of_its_window() -> None:
    hz, amplitude = 1000.0 * 1024 / 1024, 0.5
    wave = amplitude * torch.sin(2 * math.pi * hz * torch.arange(24_000) / 24_000)
    middle = log_mel(wave[None])[0, :, 47]
    bin_hz = torch.arange(513) * 24_000 / 1024
    nearest = int((bin_hz - hz).abs().argmin())
    assert middle.argmax() == mel_filterbank()[nearest].argmax()
    # a bin's magnitude of a tone is amplitude/2 times the sum of the window, less the scalloping of an off-bin tone
    peak = magnitude(wave[None], 1024, 256)[0, :, 47].max()
    assert 0.84 * amplitude / 2 * 512 < peak <= 1.001 * amplitude / 2 * 512


def test_window_is_periodic() -> None:
    window = hann_window(8)
    assert torch.allclose(window[1:], window[1:].flip(0)) and window[0] == 0


def test_gradient_is_finite_at_silence() -> None:
    wave = torch.zeros(1, 4096, requires_grad=True)
    log_mel(wave, AudioConfig()).sum().backward()
    assert wave.grad is not None and torch.isfinite(wave.grad).all()
