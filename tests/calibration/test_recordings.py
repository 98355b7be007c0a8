"""Recordings on disk: what the stages are fed, caching, and what becomes of interruptions and damage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from labkit.calibration import CalibrationSet, calibration_set, files, recordings
from labkit.errors import InvalidAudioError, LabError
from labkit.model.checkpoint import load_decoder, load_gpt
from labkit.voices import Voice

COUNT = 9  # one more than is spoken at once


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(recordings, "RANDOM_STEPS", 6)
    monkeypatch.setattr(recordings, "MAX_STEPS", 5)
    return tmp_path


def small_set(voice: Voice, **options) -> CalibrationSet:
    return calibration_set(voice, "english-calibration", COUNT, minimum=1, **options)


def speaking(voice: Voice) -> Voice:
    """The same random weights, spoken by sampling as a trained voice is."""
    return replace(voice, card=replace(voice.card, for_quality=True))


def test_the_gpt_fed_at_once_says_what_it_said_step_by_step(tiny_voice: Voice) -> None:
    made = small_set(speaking(tiny_voice))
    gpt = load_gpt(tiny_voice.folder)
    with torch.inference_mode():
        for feed, recording in zip(made.feeds("gpt"), made.recordings(), strict=True):
            prompt, steps = len(recording.ids), len(recording.codes)
            assert feed["embeddings"].shape == (1, prompt + steps, tiny_voice.config.gpt.hidden)
            hidden = gpt(torch.from_numpy(feed["embeddings"]))[0, prompt - 1 :].numpy()
            np.testing.assert_allclose(hidden[:steps], recording.hidden, atol=1e-5)


def test_decoder_and_vocoder_are_fed_what_came_before_them(tiny_voice: Voice) -> None:
    made = small_set(tiny_voice)
    decoder = load_decoder(tiny_voice.folder)
    pairs = list(zip(made.feeds("decoder"), made.feeds("vocoder"), strict=True))
    assert len(pairs) == COUNT
    for fed, heard in pairs:
        assert fed["hidden"].shape[1] * 2 == heard["mel"].shape[2] == 12
        with torch.inference_mode():
            mel = decoder(torch.from_numpy(fed["hidden"])).numpy()
        np.testing.assert_allclose(mel, heard["mel"], atol=1e-5)


def test_the_codes_path_feeds_codes(tiny_voice: Voice) -> None:
    feeds = list(small_set(tiny_voice, audio_path="codes").feeds("decoder"))
    assert feeds[0]["codes"].shape == (1, 6, 4) and feeds[0]["codes"].dtype == np.int64


def test_nothing_is_spoken_twice(tiny_voice: Voice, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [recording.codes for recording in small_set(tiny_voice).recordings()]
    monkeypatch.setattr(CalibrationSet, "_speak", lambda *_: pytest.fail("spoken again"))
    for before, after in zip(first, small_set(tiny_voice).recordings(), strict=True):
        np.testing.assert_array_equal(before, after.codes)


def test_an_interrupted_recording_goes_on_and_damage_is_mended(tiny_voice: Voice) -> None:
    made = small_set(speaking(tiny_voice))

    def interrupt(line: str) -> None:
        if "sentence 9" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made.record(interrupt)
    assert len(list(made.folder.iterdir())) == 8
    (made.folder / "003.npz").write_bytes(b"PK cut off")
    lines: list[str] = []
    made.record(lines.append)
    assert [line.split(":")[1] for line in lines] == [" sentence 1 of 2"]
    assert len(list(made.recordings())) == COUNT
    assert {file.name for file in made.folder.iterdir()} == {f"{i:03d}.npz" for i in range(COUNT)}


def test_the_hash_tells_sets_apart_before_any_work(tiny_voice: Voice) -> None:
    hashes = {
        small_set(tiny_voice, **options).content_hash
        for options in ({}, {"seed": 1}, {"speaker": "random-1"}, {"audio_path": "codes"})
    }
    hashes.add(calibration_set(tiny_voice, "mandarin-calibration", COUNT, minimum=1).content_hash)
    assert len(hashes) == 5
    assert small_set(tiny_voice).content_hash in hashes
    assert not small_set(tiny_voice).folder.exists()


def test_a_voice_that_says_nothing_is_an_error(tiny_voice: Voice) -> None:
    made = small_set(tiny_voice)
    made.record()
    for i in range(5):
        files.write_recording(
            made._file(i), ids=np.arange(3), codes=np.zeros((0, 4), np.int64),
            hidden=np.zeros((0, 48), np.float32), mel=np.zeros((0, 0), np.float32),
        )  # fmt: skip
    with pytest.raises(InvalidAudioError, match="only 4 of 9"):
        list(made.feeds("decoder"))


def test_a_folder_that_cannot_be_made_is_named(tiny_voice: Voice, cache: Path) -> None:
    (cache / "calibration").write_text("in the way")
    with pytest.raises(LabError, match=r"calibration.*cannot be written.*LABKIT_CACHE"):
        small_set(tiny_voice).record()
