"""Features -> audio, whole or incrementally, through the decoder and vocoder stages.

Both networks are convolutional, so a sample depends on a bounded neighbourhood. The incremental renderer runs them
on windows wide enough that what it hands out equals the whole utterance's audio, to rounding. Its work is linear in
the length. Sample s belongs to mel frame s / 256; frames 2t and 2t+1 to decode step t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import FloatArray
from labkit.model.config import ConvStackConfig, VoiceConfig
from labkit.synthesis.request import Stages, Timings


@dataclass(frozen=True)
class Reach:
    """How far each network looks to either side, in mel frames.

    `decoder`: stem of two width-3 convolutions, a dilated one per block, the closing width-3 one.
    `vocoder`: width-7 stem and one width-7 convolution per block. `overlap`: half an inverse-STFT window.
    """

    decoder: int
    vocoder: int
    overlap: int

    @classmethod
    def of(cls, config: VoiceConfig, audio_path: str) -> Reach:
        stack: ConvStackConfig = config.dvae.decoder if audio_path == "codes" else config.decoder
        return cls(
            decoder=2 + stack.layers * stack.dilation * (stack.kernel // 2) + 1,
            vocoder=3 + 3 * config.vocoder.layers,
            overlap=config.audio.n_fft // config.audio.hop // 2,
        )

    @property
    def lookahead_steps(self) -> int:
        """Decode steps that must be known after a step before its audio is final."""
        return math.ceil((self.decoder + self.vocoder + self.overlap) / 2)


def render(stages: Stages, features: NDArray[Any], timings: Timings) -> FloatArray:
    """All of one utterance: features [T, D] or codes [T, 4] -> audio [512 T - 256]; empty for T = 0."""
    if len(features) == 0:
        return np.zeros(0, dtype=np.float32)
    begun = perf_counter()
    mel = stages.decoder(features[None])
    decoded = perf_counter()
    audio = stages.vocoder(mel)[0]
    timings.decoder_s += decoded - begun
    timings.vocoder_s += perf_counter() - decoded
    return audio


class IncrementalRenderer:
    """Turns a growing array of features into audio, handing out each sample once it can no longer change."""

    def __init__(self, stages: Stages, timings: Timings) -> None:
        config: VoiceConfig = stages.voice.config
        self.stages, self.timings = stages, timings
        self.reach = Reach.of(config, stages.audio_path)
        self.hop = config.audio.hop
        self._mel = np.zeros((config.audio.n_mels, 0), dtype=np.float32)  # final frames still needed
        self._mel_start = 0  # index of the first frame kept
        self._frames = 0  # final frames made so far
        self._samples = 0  # samples handed out so far

    def advance(self, features: NDArray[Any], *, last: bool) -> FloatArray:
        """Audio that became final. features: all steps so far, [T, D] or [T, 4]; `last`: no more will come."""
        if len(features):
            self._decode(features, last)
        return self._vocode(last)

    def _decode(self, features: NDArray[Any], last: bool) -> None:
        known = 2 * len(features)
        final = known if last else known - self.reach.decoder
        if final <= self._frames:
            return
        first = max(0, self._frames - self.reach.decoder) // 2  # step where the window begins
        begun = perf_counter()
        mel = self.stages.decoder(features[None, first:])[0]
        self.timings.decoder_s += perf_counter() - begun
        fresh = mel[:, self._frames - 2 * first : final - 2 * first]
        self._mel = np.concatenate([self._mel, fresh], axis=1)
        self._frames = final

    def _vocode(self, last: bool) -> FloatArray:
        frames = self._frames
        final = self.hop * (frames - 1 if last else frames - self.reach.vocoder - self.reach.overlap)
        if final <= self._samples:
            return np.zeros(0, dtype=np.float32)
        # frames from `first` on suffice: its left border's error reaches less than vocoder + overlap frames
        first = max(0, self._samples // self.hop - self.reach.vocoder - self.reach.overlap)
        self._mel = self._mel[:, first - self._mel_start :]
        self._mel_start = first
        begun = perf_counter()
        audio = self.stages.vocoder(self._mel[None])[0]
        self.timings.vocoder_s += perf_counter() - begun
        offset = first * self.hop
        fresh = audio[self._samples - offset : final - offset]
        self._samples = final
        return fresh
