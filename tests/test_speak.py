from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from rich.console import Console

from labkit import pipeline
from labkit.errors import InvalidAudioError, LabError, SpeakerError, SpecError, TextError, UserError
from labkit.speak import say
from labkit.voices import Voice


@pytest.fixture
def voice(tiny_voice: Voice) -> str:
    return str(tiny_voice.folder)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def never_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("the pipeline was opened")

    monkeypatch.setattr(pipeline, "open_pipeline", fail)


@pytest.mark.parametrize("extension", ["wav", "flac", "ogg"])
def test_audio_is_written_whole(voice: str, tmp_path: Path, extension: str) -> None:
    out = tmp_path / f"said.{extension}"
    spoken = say("one two", voice=voice, out=out, max_steps=20)
    samples, rate = soundfile.read(out)
    assert rate == spoken.sample_rate == 24_000
    assert len(samples) == len(spoken.audio) == 512 * 20 - 256 and spoken.steps == 20
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [out.name]


def test_times_are_told_by_their_definitions(voice: str) -> None:
    spoken = say("one two", voice=voice, max_steps=20)
    assert spoken.rtf == spoken.latency_s / spoken.audio_s and spoken.audio_s == len(spoken.audio) / 24_000
    assert spoken.ttft_s == spoken.latency_s and not spoken.streamed and spoken.load_s > 0
    assert spoken.flags == ("hit_max",) and spoken.out is None


def test_streaming_says_the_same_and_is_heard_earlier(voice: str) -> None:
    whole = say("one two", voice=voice, max_steps=60, seed=4)
    streamed = say("one two", voice=voice, max_steps=60, seed=4, stream=True)
    np.testing.assert_allclose(streamed.audio, whole.audio, atol=1e-5)
    assert streamed.streamed and 0 < streamed.ttft_s < streamed.latency_s


def test_the_same_seed_gives_the_same_audio_and_another_gives_other(voice: str) -> None:
    first, again, other = (say("one", voice=voice, seed=seed, max_steps=9) for seed in (1, 1, 2))
    assert np.array_equal(first.audio, again.audio) and not np.array_equal(first.audio, other.audio)


def test_speakers_by_name_by_seed_and_by_string(voice: str) -> None:
    from labkit.voices import resolve_voice

    string = resolve_voice(voice).speakers()["random-1"].to_string()
    default, named, drawn, given = (
        say("one", voice=voice, speaker=speaker, max_steps=5).audio
        for speaker in (None, "random-0", "random:7", string)
    )
    assert np.array_equal(default, named)
    assert not np.array_equal(named, given) and not np.array_equal(named, drawn)


def test_the_summary_is_json_and_the_rendering_tells_the_figures(voice: str) -> None:
    spoken = say("one [laugh]", voice=voice, max_steps=5)
    summary = json.loads(json.dumps(spoken.summary(), allow_nan=False))
    assert summary["rtf"] == spoken.rtf and "audio" not in summary and summary["flags"] == ["hit_max"]
    console = Console(file=io.StringIO(), width=120)
    console.print(spoken)
    console.print(replace(spoken, out=Path("a[b].wav")))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for word in ("a[b].wav", "one [laugh]", f"{spoken.rtf:.3f}", "first audio", "hit_max"):
        assert word in text


BAD: dict[str, tuple[dict[str, Any], type[UserError], str]] = {
    "empty": ({"text": " "}, TextError, "empty"),
    "marks": ({"text": "?!"}, TextError, "no word"),
    "long": ({"text": "a" * 20_000}, TextError, "20000 characters"),
    "voice": ({"voice": "nanno"}, UserError, "'nanno'"),
    "recipe": ({"recipe": "torch-fp3"}, SpecError, "did you mean 'torch-fp32'"),
    "pipeline": ({"recipe": "upstream"}, SpecError, "whole pipeline"),
    "speaker": ({"speaker": "bob"}, SpeakerError, "'bob' is unknown"),
    "device": ({"device": "tpu"}, SpecError, "'tpu' is unknown"),
    "no thread": ({"threads": 0}, SpecError, "threads 0: give a number from 1 to 256"),
    "threads": ({"threads": 100_000}, SpecError, "threads 100000: give"),
    "audio path": ({"audio_path": "mel"}, SpecError, "'mel' is unknown"),
    "extension": ({"out": "said.mp3"}, UserError, r"\.wav, \.flac, \.ogg"),
    "no extension": ({"out": "said"}, UserError, "extension"),
    "no folder": ({"out": "nowhere/said.wav"}, UserError, "does not exist"),
    "style": ({"style": "loud"}, SpecError, "'loud'"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("never_opened")
def test_mistakes_are_named_before_anything_is_loaded(voice: str, case: str) -> None:
    changes, kind, words = BAD[case]
    with pytest.raises(kind, match=words) as caught:
        say(**{"text": "one", "voice": voice, **changes})
    assert caught.value.exit_code == 2


@pytest.mark.usefixtures("never_opened")
def test_a_voice_sample_given_as_the_speaker_is_told_apart(voice: str) -> None:
    from labkit.model.speaker import VoiceSample

    sample = VoiceSample(np.arange(40).reshape(4, 10)).to_string()
    with pytest.raises(SpeakerError, match="voice sample"):
        say("one", voice=voice, speaker=sample)


@pytest.mark.usefixtures("never_opened")
def test_a_folder_that_cannot_be_written_is_refused(
    voice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(30, os.strerror(30))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(UserError, match=r"cannot be written.*[Rr]ead-only"):
        say("one", voice=voice, out=tmp_path / "said.wav")
    (tmp_path / "dir.wav").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        say("one", voice=voice, out=tmp_path / "dir.wav")


def test_a_failed_write_leaves_nothing_behind(
    voice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., None] = soundfile.write

    def full(file: Path, *args: Any, **kwargs: Any) -> None:
        real(file, *args, **kwargs)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(soundfile, "write", full)
    with pytest.raises(LabError, match=r"could not be written.*No space left"):
        say("one", voice=voice, out=tmp_path / "said.wav", max_steps=4)
    assert not [path for path in tmp_path.iterdir() if path.is_file()]


def test_silence_is_an_error_not_a_file(voice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from labkit import synthesis

    speak = synthesis.speak

    def silent(*args: Any, **kwargs: Any) -> list:
        return [
            dataclasses.replace(u, audio=u.audio[:0], flags=("immediate_end",))
            for u in speak(*args, **kwargs)
        ]

    monkeypatch.setattr(synthesis, "speak", silent)
    with pytest.raises(InvalidAudioError, match=r"immediate_end.*another seed"):
        say("one", voice=voice, out=tmp_path / "said.wav", max_steps=4)
    assert not (tmp_path / "said.wav").exists()
