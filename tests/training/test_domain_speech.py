"""Pauses are as long as defined, shards resume, and speech of another plan is refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pytest

from labkit.errors import UserError
from labkit.training.clip_check import check_corpus
from labkit.training.corpus import SAMPLE_RATE, Item, read_corpus, words_of
from labkit.training.domain_plan import DomainRecipe, domain_plan
from labkit.training.domain_speech import (
    PAUSE_S,
    PLAN_VERSION,
    as_written,
    domain_folder,
    fit_clips,
    run_stages,
    speak_domain,
)

PLAN_FINGERPRINT = "b14944c572a33971779f2986f9097eb48d958ba1a8bcfe457037d1f1d61923f3"


def hum(text: str, voice: str, tempo: float) -> np.ndarray:
    """A quarter of a second of tone a word, in silence."""
    t = np.arange(int(0.25 * len(words_of(text)) / tempo * SAMPLE_RATE)) / SAMPLE_RATE
    silence = np.zeros(SAMPLE_RATE // 4)
    return np.concatenate([silence, 0.3 * np.sin(2 * np.pi * 220 * t), silence]).astype(np.float32)


def items(*texts: str) -> list[Item]:
    return [Item(i, "a", "train", text, 1.0) for i, text in enumerate(texts)]


def quiet_stretches(audio: np.ndarray) -> list[float]:
    """Lengths in seconds of the inner stretches of 10 ms blocks without sound."""
    blocks = np.abs(audio[: len(audio) // 240 * 240]).reshape(-1, 240).max(1) > 0.01
    edges = np.flatnonzero(np.diff(np.r_[0, blocks.astype(int), 0]))
    return [(b - a) / 100 for a, b in zip(edges[1:-1:2], edges[2::2], strict=True)]


def test_a_break_is_a_pause_of_the_defined_length() -> None:
    audio = as_written(hum)("turn left [uv_break] now and [uv_break] go.", "a", 1.0)
    assert quiet_stretches(audio) == [pytest.approx(PAUSE_S, abs=0.03)] * 2


def test_each_part_but_the_last_is_spoken_as_if_a_comma_followed() -> None:
    heard: list[str] = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        heard.append(text)
        return hum(text, voice, tempo)

    as_written(speak)("stop [uv_break] turn left.", "a", 1.0)
    as_written(speak)("stop, turn left.", "a", 1.0)
    assert heard == ["stop,", "turn left.", "stop, turn left."]


def test_the_teacher_reads_a_respelling_where_it_would_say_another_word() -> None:
    heard: list[str] = []

    def speak(text: str, voice: str, tempo: float) -> np.ndarray:
        heard.append(text)
        return hum(text, voice, tempo)

    as_written(speak)("close the door, increase the speed.", "a", 1.0)
    assert heard == ["cloze the door, in crease the speed."]


def test_a_part_without_sound_spoils_the_clip(tmp_path) -> None:
    def mute(text: str, voice: str, tempo: float) -> np.ndarray:
        return hum(text, voice, tempo) * (0.0 if "left" in text else 1.0)

    speak_domain(items("stop [uv_break] turn left", "stop"), tmp_path, mute, say=lambda _: None)
    assert [clip.item.text for clip in read_corpus(tmp_path)] == ["stop"]


def test_speech_on_disk_is_not_spoken_again_and_that_of_another_plan_is_refused(tmp_path) -> None:
    speak_domain(items("stop", "turn left"), tmp_path, hum, say=lambda _: None)

    def fail(text: str, voice: str, tempo: float) -> np.ndarray:
        raise AssertionError("spoken twice")

    speak_domain(items("stop", "turn left"), tmp_path, fail, say=lambda _: None)
    with pytest.raises(UserError, match=r"says 'turn left', which is not item 1 of the plan.*--out"):
        speak_domain(items("stop", "turn right"), tmp_path, fail, say=lambda _: None)


def test_only_clips_that_were_heard_right_are_fit(tmp_path) -> None:
    speak_domain(items("stop", "turn left"), tmp_path, hum, say=lambda _: None)
    assert fit_clips(tmp_path) == []
    check_corpus(tmp_path, lambda audio: "Stop.", say=lambda _: None)
    assert [clip.item.text for clip in fit_clips(tmp_path)] == ["stop"]


def test_the_speech_lies_in_the_cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    assert domain_folder() == tmp_path / "training" / f"domain-{PLAN_VERSION}"


def test_an_unknown_stage_is_refused(tmp_path) -> None:
    with pytest.raises(
        UserError, match="'gpt' does not exist for the domain corpus; its stages: data, check"
    ):
        run_stages(["gpt"], tmp_path)


def test_the_plan_is_the_one_its_version_names() -> None:
    """When this fails, raise PLAN_VERSION: speech in the caches of others belongs to the old plan."""
    plan = domain_plan(DomainRecipe(items=192), ["close the window"], ["turn left"])
    text = json.dumps([asdict(item) for item in plan])
    assert (PLAN_VERSION, hashlib.sha256(text.encode()).hexdigest()) == (1, PLAN_FINGERPRINT)
