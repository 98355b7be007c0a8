"""Seeded weights that mean nothing, in a real voice's layout, written one tensor at a time.

For speed measurements and parity checks at any size. Every tensor's numbers depend only on the seed, its file and
its name, so a voice is the same wherever and in whatever order it is made.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labkit.model.checkpoint import files_of, write_pieces
from labkit.model.config import VoiceConfig
from labkit.model.pieces import Piece

FloatArray = NDArray[np.float32]


def write_random_weights(
    asset: Path, config: VoiceConfig, seed: int, progress: Callable[[str], None] | None = None
) -> None:
    """Write all five weight files in float32. `progress` gets each file's name before it is written."""
    from labkit.model.dvae import Decoder, Dvae
    from labkit.model.gpt import Gpt
    from labkit.model.no_init import without_initialization
    from labkit.model.vocoder import Vocoder

    with without_initialization():  # for their shapes alone: memory that is never written is never taken
        modules = (
            Gpt(config.gpt),
            Decoder(config.decoder, config.audio),
            Dvae(config.dvae, config.audio),
            Vocoder(config.vocoder, config.audio),
        )
    for module in modules:
        shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
        for file, pieces in files_of(module, shapes, config).items():
            if progress is not None:
                progress(file)
            write_pieces(asset / file, pieces, lambda piece: _random(piece, seed), config.audio, half=False)


def _random(piece: Piece, seed: int) -> FloatArray:
    """Magnitudes that keep activations in the range of a trained voice.

    Matrices: N(0, 1/fan_in), which keeps the variance of what passes through. Norm weights and per-channel scales
    lie around 1 and 0.1; biases are small; `coef` is a spread of positive scales.
    """
    key = np.array([seed % 2**64, zlib.crc32(f"{piece.file}/{piece.key}".encode())], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key))
    normal = generator.standard_normal(piece.shape, dtype=np.float32)
    if piece.parameter == "coef":
        return np.float32(1.0) + np.float32(0.5) * np.tanh(normal, dtype=np.float32)
    if len(piece.shape) > 1:
        fan_in = np.float32(np.prod(piece.shape[1:]))
        return normal / np.sqrt(fan_in)
    if piece.parameter.endswith("norm.weight"):
        return 1.0 + 0.1 * normal
    if piece.parameter.endswith(".scale"):
        return 0.1 * (1.0 + 0.1 * normal)
    return 0.02 * normal
