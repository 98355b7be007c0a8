"""A stand-in teacher for smoke runs: each word is a short harmonic tone of its own, no TTS needed.

It proves that the recipe runs from end to end; a voice made of it is worth nothing.
"""

from __future__ import annotations

import zlib

import numpy as np

from labkit.training.corpus import SAMPLE_RATE, words_of

WORD_S, PAUSE_S = 0.22, 0.06


class Tones:
    """Speaks like `Teacher.speak`: 24 kHz mono float32."""

    def speak(self, text: str, voice: str, tempo: float = 1.0) -> np.ndarray:
        base = 90.0 + zlib.crc32(voice.encode()) % 120
        parts = [part for word in words_of(text) for part in (self._word(word, base, tempo), self._pause())]
        return np.concatenate([self._pause(), *parts])

    def _word(self, word: str, base: float, tempo: float) -> np.ndarray:
        n = int(WORD_S / tempo * SAMPLE_RATE)
        t = np.arange(n) / SAMPLE_RATE
        kind = zlib.crc32(word.encode()) % 10
        pitch = base * (1 + kind / 8)
        wave = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 6 + kind))
        return (0.2 * wave * np.hanning(n)).astype(np.float32)

    def _pause(self) -> np.ndarray:
        return np.zeros(int(PAUSE_S * SAMPLE_RATE), np.float32)
