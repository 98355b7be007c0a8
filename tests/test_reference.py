from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from labkit import pipeline
from labkit.errors import InvalidAudioError
from labkit.reference import RANDOM_STEPS, ReferenceClip, reference
from labkit.text.corpus import CorpusText
from labkit.voices import Voice

TEXTS = [CorpusText("a", "one two"), CorpusText("b", "three")]


@pytest.fixture
def voice(tiny_voice: Voice) -> Voice:
    """The same weights, declared worth listening to."""
    return dataclasses.replace(tiny_voice, card=dataclasses.replace(tiny_voice.card, for_quality=True))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    return tmp_path


def _forbid_speaking(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("the pipeline was opened")

    monkeypatch.setattr(pipeline, "open_pipeline", fail)


def _same(a: ReferenceClip, b: ReferenceClip) -> bool:
    arrays = ((a.codes, b.codes), (a.hidden, b.hidden), (a.audio, b.audio))
    return (a.id, a.text, a.ended) == (b.id, b.text, b.ended) and all(np.array_equal(x, y) for x, y in arrays)


def test_references_are_made_once(voice: Voice, tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    made = reference(voice, TEXTS, max_steps=6, progress=lines.append)
    assert [clip.id for clip in made] == ["a", "b"] and len(lines) == 2
    for clip in made:
        assert (
            clip.codes.shape == (6, 4)
            and clip.hidden is not None
            and clip.hidden.shape == (6, tiny_voice.config.gpt.hidden)
        )
        assert clip.audio is not None and clip.audio.shape == (512 * 6 - 256,) and not clip.ended
    _forbid_speaking(monkeypatch)
    assert all(map(_same, made, reference(voice, TEXTS, max_steps=6)))


@pytest.mark.parametrize(
    "changes", [{"seed": 1}, {"max_steps": 5}, {"speaker": "random-1"}, {"audio_path": "codes"}]
)
def test_whatever_decides_the_speech_is_in_the_key(
    voice: Voice, changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference(voice, TEXTS[:1], max_steps=6)
    _forbid_speaking(monkeypatch)
    with pytest.raises(AssertionError, match="pipeline was opened"):
        reference(voice, TEXTS[:1], **{"max_steps": 6, **changes})


def test_only_missing_and_damaged_clips_are_made_again(voice: Voice, cache: Path) -> None:
    first = reference(voice, TEXTS, max_steps=4)
    files = sorted((cache / "references").glob("*.npz"))
    files[0].write_bytes(files[0].read_bytes()[:100])
    lines: list[str] = []
    assert all(map(_same, first, reference(voice, TEXTS, max_steps=4, progress=lines.append)))
    assert len(lines) == 1 and not list((cache / "references").glob("*partial*"))


def test_a_random_voice_gets_random_codes_of_a_fixed_length_and_no_audio(
    tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch
) -> None:
    _forbid_speaking(monkeypatch)
    first = reference(tiny_voice, TEXTS, seed=2)
    again = reference(tiny_voice, TEXTS, seed=2)
    other = reference(tiny_voice, TEXTS, seed=3)
    assert all(np.array_equal(a.codes, b.codes) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0].codes, other[0].codes) and not np.array_equal(
        first[0].codes, first[1].codes
    )
    for clip in first:
        assert clip.codes.shape == (RANDOM_STEPS, 4) and 0 <= clip.codes.min() <= clip.codes.max() < 625
        assert clip.hidden is None and clip.audio is None
    assert len(reference(tiny_voice, TEXTS, max_steps=9)[0].codes) == 9


def test_a_reference_that_says_nothing_is_an_error(voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    from labkit import synthesis

    speak = synthesis.speak

    def silent(stages: object, rows: list, **kwargs: object) -> list:
        return [
            dataclasses.replace(u, codes=u.codes[:0], flags=("immediate_end",))
            for u in speak(stages, rows, max_steps=2)
        ]  # type: ignore[arg-type]

    monkeypatch.setattr(synthesis, "speak", silent)
    with pytest.raises(InvalidAudioError, match=r"nothing usable for 'one two'.*immediate_end.*another seed"):
        reference(voice, TEXTS)
