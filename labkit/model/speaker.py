"""Who speaks: typed speaker embeddings and voice samples, and their strings in ChatTTS's encodings.

Both strings are base16384 text over LZMA data (raw LZMA2 stream, preset 9 extreme), and look alike:

* a *speaker embedding* is float16 bytes, compressed;
* a *voice sample* is two little-endian uint16 (codebooks, steps), then uint16 codes, compressed.

Giving one where the other belongs is a common mistake, so each decoder recognizes the other's strings. No torch here.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass

import numpy as np
import pybase16384
from numpy.typing import NDArray

from labkit.errors import SpeakerError

_LZMA_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
# base16384 writes 14 bits per character from U+4E00 on, and one of U+3D01..U+3D06 for a remainder of bytes
_FIRST, _LAST = 0x4E00, 0x4E00 + 2**14 - 1
_REMAINDERS = range(0x3D01, 0x3D07)


@dataclass(frozen=True, eq=False)
class SpeakerEmbedding:
    """A speaker as one vector, kept in float16 as its string keeps it. `vector`: [hidden] float16."""

    vector: NDArray[np.float16]

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):  # what overflows is refused below
            vector = np.array(self.vector, dtype=np.float16)
        if vector.ndim != 1 or vector.size == 0:
            raise SpeakerError(f"speaker embedding: expected one vector, found shape {vector.shape}.")
        if not np.isfinite(vector).all() or not vector.any():
            raise SpeakerError("speaker embedding: the vector is all zero or not finite in float16.")
        vector.setflags(write=False)
        object.__setattr__(self, "vector", vector)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SpeakerEmbedding) and np.array_equal(self.vector, other.vector)

    def __hash__(self) -> int:
        return hash(self.vector.tobytes())

    @classmethod
    def from_string(cls, text: str, hidden: int | None = None) -> SpeakerEmbedding:
        """Decode a speaker string; `hidden` is the voice's width, checked when given."""
        raw = _base16384(text, "speaker string")
        data = _decompress(raw)
        if data is None:
            hint = (
                " It is a voice sample: give it as the sample, not as the speaker."
                if _sample_codes(raw) is not None
                else " Copy the whole string, from its first to its last character."
            )
            raise SpeakerError(f"speaker string {_shown(text)} does not hold a speaker embedding.{hint}")
        if len(data) % 2:
            raise SpeakerError(f"speaker string {_shown(text)} holds {len(data)} bytes, not float16 numbers.")
        vector = np.frombuffer(data, dtype="<f2")
        if hidden is not None and vector.size != hidden:
            raise SpeakerError(
                f"speaker string {_shown(text)} holds {vector.size} numbers but the voice needs {hidden}; "
                "it was made for another voice."
            )
        return cls(vector)

    def to_string(self) -> str:
        return pybase16384.encode_to_string(_compress(self.vector.astype("<f2").tobytes()))

    def normalized(self) -> NDArray[np.float32]:
        """The unit vector that overwrites the `[spk_emb]` embedding, [hidden] float32.

        Computed in float16 steps as ChatTTS does (sum in float32, norm and quotient rounded to float16), so that
        the prompt's embeddings are equal bit by bit.
        """
        wide = self.vector.astype(np.float32)
        norm = np.float32(np.float16(np.sqrt(np.sum(wide * wide, dtype=np.float32))))
        return (wide / norm).astype(np.float16).astype(np.float32)


@dataclass(frozen=True, eq=False)
class VoiceSample:
    """A recorded voice as codes, to continue from. `codes`: [codebooks, steps] uint16."""

    codes: NDArray[np.uint16]

    def __post_init__(self) -> None:
        codes = np.array(self.codes)
        if codes.ndim != 2 or codes.size == 0:
            raise SpeakerError(f"voice sample: expected codes [codebooks, steps], found shape {codes.shape}.")
        if codes.min() < 0 or codes.max() >= 2**16 or max(codes.shape) >= 2**16:
            raise SpeakerError("voice sample: codes and their count must fit 16 bits.")
        codes = codes.astype(np.uint16)
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoiceSample) and np.array_equal(self.codes, other.codes)

    def __hash__(self) -> int:
        return hash(self.codes.tobytes())

    @classmethod
    def from_string(cls, text: str) -> VoiceSample:
        raw = _base16384(text, "voice sample")
        codes = _sample_codes(raw)
        if codes is None:
            hint = (
                " It is a speaker embedding: give it as the speaker, not as the sample."
                if _decompress(raw) is not None
                else " Copy the whole string, from its first to its last character."
            )
            raise SpeakerError(f"voice sample {_shown(text)} does not hold codes.{hint}")
        return cls(codes)

    def to_string(self) -> str:
        shape = np.array(self.codes.shape, dtype="<u2").tobytes()
        return pybase16384.encode_to_string(shape + _compress(self.codes.astype("<u2").tobytes()))


@dataclass(frozen=True, eq=False)
class SpeakerStatistics:
    """Spread and centre of a voice's speakers, [hidden] float16 each, from which new ones are drawn."""

    std: NDArray[np.float16]
    mean: NDArray[np.float16]

    @classmethod
    def from_string(cls, text: str) -> SpeakerStatistics:
        """base16384 of float16 numbers: all deviations, then all means."""
        raw = _base16384(text, "speaker statistics")
        if len(raw) == 0 or len(raw) % 4:
            raise SpeakerError(f"speaker statistics {_shown(text)} hold {len(raw)} bytes: not two vectors.")
        std, mean = np.frombuffer(raw, dtype="<f2").reshape(2, -1)
        return cls(std, mean)

    def to_string(self) -> str:
        return pybase16384.encode_to_string(np.stack([self.std, self.mean]).astype("<f2").tobytes())


def random_speaker(seed: int, statistics: SpeakerStatistics) -> SpeakerEmbedding:
    """A new speaker, the same for the same seed and statistics."""
    generator = np.random.Generator(np.random.Philox(seed % 2**64))
    normal = generator.standard_normal(statistics.mean.size)
    return SpeakerEmbedding((normal * statistics.std + statistics.mean).astype(np.float16))


def _base16384(text: str, what: str) -> bytes:
    text = text.strip()
    body = text[:-1] if text and ord(text[-1]) in _REMAINDERS else text
    stranger = next((c for c in body if not _FIRST <= ord(c) <= _LAST), None)
    if stranger is not None or not body:
        found = f"the character {stranger!r}" if stranger is not None else "no data"
        raise SpeakerError(f"{what} {_shown(text)} is not base16384 text: it has {found}.")
    return bytes(pybase16384.decode_from_string(text))


def _compress(data: bytes) -> bytes:
    # a dictionary that holds the whole of any sample gives the preset's bytes without clearing its 64 MB first
    filters = [{**_LZMA_FILTERS[0], "dict_size": max(2**20, len(data))}]
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters)


def _decompress(data: bytes) -> bytes | None:
    """The plain bytes, or None when `data` is not one complete raw LZMA2 stream."""
    try:
        return lzma.decompress(data, format=lzma.FORMAT_RAW, filters=_LZMA_FILTERS) or None
    except lzma.LZMAError:
        return None


def _sample_codes(raw: bytes) -> NDArray[np.uint16] | None:
    data = _decompress(raw[4:])
    if data is None:
        return None
    shape = np.frombuffer(raw[:4], dtype="<u2").astype(int)
    if len(data) != 2 * shape.prod():
        return None
    return np.frombuffer(data, dtype="<u2").reshape(shape)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 24 else f"{text[:12]}…{text[-8:]} ({len(text)} characters)")
