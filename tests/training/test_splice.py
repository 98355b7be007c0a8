"""Splices say new strings, in one voice, with boundaries that follow the audio."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from labkit.training.align import spread_evenly
from labkit.training.corpus import SAMPLE_RATE, Clip, plan
from labkit.training.splice import join, quiet_cut, splice
from labkit.training.tones import Tones


def corpus_of_tones() -> list[Clip]:
    items = [i for i in plan(["a", "b"], 40, [], [], 0, 3) if len(i.words) > 1]
    return [Clip(item, Tones().speak(item.text, item.voice, item.tempo)) for item in items]


def test_spliced_strings_are_new_allowed_and_within_one_voice() -> None:
    clips = corpus_of_tones()
    boundaries = {c.item.index: spread_evenly(c.audio, len(c.item.words)) for c in clips}
    forbidden = {("one", "two"), ("three", "four")}
    made = list(splice(clips, boundaries, forbidden, 30, seed=1))
    assert len(made) == 30
    natural = {(c.item.voice, tuple(c.item.words)) for c in clips}
    strings = [(clip.item.voice, tuple(clip.item.words)) for clip, _ in made]
    assert not natural & set(strings) and len(set(strings)) == 30
    assert not forbidden & {words for _, words in strings}
    again = list(splice(clips, boundaries, forbidden, 30, seed=1))
    assert [clip.item for clip, _ in again] == [clip.item for clip, _ in made]


def test_spliced_boundaries_are_in_order_and_inside_the_clip() -> None:
    clips = corpus_of_tones()
    boundaries = {c.item.index: spread_evenly(c.audio, len(c.item.words)) for c in clips}
    for clip, times in splice(clips, boundaries, set(), 20, seed=2):
        assert len(times) == len(clip.item.words)
        starts = [start for start, _ in times]
        assert starts == sorted(starts) and starts[-1] < len(clip.audio) / SAMPLE_RATE


def test_the_cut_moves_to_the_silence_beside_the_boundary() -> None:
    audio = np.ones(SAMPLE_RATE, np.float32)
    audio[int(0.515 * SAMPLE_RATE) : int(0.525 * SAMPLE_RATE)] = 0
    assert abs(quiet_cut(audio, 0.5) / SAMPLE_RATE - 0.52) < 0.003


def test_a_joint_is_crossfaded_without_a_step() -> None:
    wave = join(np.ones(1000, np.float32), np.full(1000, -1, np.float32))
    assert len(wave) == 2000 - int(0.008 * SAMPLE_RATE)
    assert np.abs(np.diff(wave)).max() < 0.02


def test_both_halves_of_a_splice_have_one_pace() -> None:
    clips = [
        Clip(replace(c.item, tempo=1.25 if c.item.index % 2 else 1.0), c.audio) for c in corpus_of_tones()
    ]
    boundaries = {c.item.index: spread_evenly(c.audio, len(c.item.words)) for c in clips}
    slow = [c for c in clips if c.item.tempo == 1.0]
    made = [
        (clip.item.tempo, tuple(clip.item.words)) for clip, _ in splice(clips, boundaries, set(), 40, seed=1)
    ]
    pairs = {
        tempo: {pair for c in clips if c.item.tempo == tempo for pair in pairwise(c.item.words)}
        for tempo in (1.0, 1.25)
    }
    assert slow and {tempo for tempo, _ in made} == {1.0, 1.25}
    assert all(set(pairwise(words)) <= pairs[tempo] for tempo, words in made)


def test_nothing_aligned_gives_nothing() -> None:
    assert list(splice(corpus_of_tones(), {}, set(), 5, seed=1)) == []
