from __future__ import annotations

import lzma

import numpy as np
import pybase16384
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from labkit.errors import SpeakerError
from labkit.model.speaker import SpeakerEmbedding, SpeakerStatistics, VoiceSample, random_speaker

halves = st.floats(-100, 100, width=16)
vectors = arrays(np.float16, st.integers(1, 96), elements=halves).filter(lambda v: bool(v.any()))
codes = arrays(np.uint16, st.tuples(st.integers(1, 4), st.integers(1, 40)), elements=st.integers(0, 65535))


def embedding(seed: int = 0, width: int = 768) -> SpeakerEmbedding:
    return SpeakerEmbedding(np.random.default_rng(seed).standard_normal(width).astype(np.float16))


@settings(max_examples=50, deadline=None)
@given(vectors)
def test_speaker_strings_come_back_bit_by_bit(vector: np.ndarray) -> None:
    speaker = SpeakerEmbedding(vector)
    assert SpeakerEmbedding.from_string(speaker.to_string(), len(vector)) == speaker


@settings(max_examples=50, deadline=None)
@given(codes)
def test_sample_strings_come_back(array: np.ndarray) -> None:
    sample = VoiceSample(array)
    assert VoiceSample.from_string(sample.to_string()) == sample


def test_strings_hold_what_the_preset_itself_writes() -> None:
    """ChatTTS compresses with the bare preset; the bytes must be the same, for strings are compared and shared."""
    preset = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    speaker = embedding()
    raw = lzma.compress(speaker.vector.tobytes(), format=lzma.FORMAT_RAW, filters=preset)
    assert speaker.to_string() == pybase16384.encode_to_string(raw)


def test_each_string_is_recognized_where_the_other_belongs() -> None:
    sample = VoiceSample(np.arange(200).reshape(4, 50))
    with pytest.raises(SpeakerError, match="It is a voice sample"):
        SpeakerEmbedding.from_string(sample.to_string())
    with pytest.raises(SpeakerError, match="It is a speaker embedding"):
        VoiceSample.from_string(embedding().to_string())


@pytest.mark.parametrize("cut", [slice(0, -7), slice(7, None), slice(0, 40)])
def test_a_cut_string_is_refused(cut: slice) -> None:
    with pytest.raises(SpeakerError, match="Copy the whole string"):
        SpeakerEmbedding.from_string(embedding().to_string()[cut])


@pytest.mark.parametrize("text", ["", "   ", "hello", "世界 two", "\u3d01"])
def test_text_that_is_no_base16384_is_refused(text: str) -> None:
    for kind in (SpeakerEmbedding, VoiceSample):
        with pytest.raises(SpeakerError, match="not base16384"):
            kind.from_string(text)


@settings(max_examples=100, deadline=None)
@given(
    st.text(max_size=60)
    | st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x8DFF), max_size=60)
)
def test_any_text_gives_an_object_or_a_speaker_error(text: str) -> None:
    for kind in (SpeakerEmbedding, VoiceSample, SpeakerStatistics):
        try:
            kind.from_string(text)
        except SpeakerError as error:
            assert str(error)


def test_a_speaker_of_another_width_is_refused() -> None:
    with pytest.raises(SpeakerError, match="768 numbers but the voice needs 48"):
        SpeakerEmbedding.from_string(embedding().to_string(), 48)


def test_blanks_around_a_pasted_string_do_not_matter() -> None:
    assert SpeakerEmbedding.from_string(f"\n {embedding().to_string()}\n") == embedding()


@pytest.mark.parametrize(
    "vector", [np.zeros(8), np.ones((2, 4)), np.array([1.0, np.nan]), np.full(4, 1e6), []]
)
def test_vectors_that_are_no_speaker_are_refused(vector: np.ndarray) -> None:
    with pytest.raises(SpeakerError):
        SpeakerEmbedding(np.asarray(vector))


@pytest.mark.parametrize("array", [np.zeros(4), np.zeros((0, 3)), np.array([[-1]]), np.array([[70_000]])])
def test_arrays_that_are_no_sample_are_refused(array: np.ndarray) -> None:
    with pytest.raises(SpeakerError):
        VoiceSample(array)


def test_normalized_is_what_torch_makes_of_half_precision() -> None:
    for seed in range(20):
        speaker = embedding(seed)
        expected = torch.nn.functional.normalize(torch.from_numpy(speaker.vector.copy()), dim=0)
        assert np.array_equal(speaker.normalized(), expected.float().numpy())
    assert np.linalg.norm(embedding().normalized()) == pytest.approx(1, abs=2e-3)


def test_objects_cannot_be_changed_by_accident() -> None:
    speaker = embedding()
    with pytest.raises(ValueError, match="read-only"):
        speaker.vector[0] = 1
    source = np.ones(4, np.float16)
    kept = SpeakerEmbedding(source)
    source[0] = 5
    assert kept.vector[0] == 1


def test_random_speakers_follow_the_statistics() -> None:
    statistics = SpeakerStatistics(np.full(4000, 2, np.float16), np.full(4000, 10, np.float16))
    again = SpeakerStatistics.from_string(statistics.to_string())
    speaker = random_speaker(5, again)
    assert speaker == random_speaker(5, statistics) and speaker != random_speaker(6, statistics)
    assert speaker.vector.astype(float).mean() == pytest.approx(10, abs=0.15)
    assert speaker.vector.astype(float).std() == pytest.approx(2, abs=0.1)


def test_statistics_of_half_a_vector_are_refused() -> None:
    with pytest.raises(SpeakerError, match="6 bytes"):
        SpeakerStatistics.from_string(pybase16384.encode_to_string(b"\0" * 6))
