"""Upstream itself, in its own environment: parity, and the recipe on a small voice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labkit.model.sampling import SamplingParams
from labkit.upstream.cases import SMALL, SMALL_SEED
from labkit.upstream.pipeline import UpstreamPipeline
from labkit.voices import make_random_voice, open_voice

pytestmark = [pytest.mark.upstream, pytest.mark.usefixtures("upstream_environment")]

PARITY = Path(__file__).parents[2] / "scripts" / "parity"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpstreamPipeline]:
    voice = open_voice(make_random_voice(tmp_path_factory.mktemp("voice"), SMALL, SMALL_SEED))
    with UpstreamPipeline.load(voice) as pipeline:
        yield pipeline


@pytest.mark.parametrize("voice", ["small", "nano", pytest.param("full", marks=pytest.mark.slow)], ids=str)
def test_no_difference_is_above_its_limit(voice: str) -> None:
    done = subprocess.run([sys.executable, PARITY, "--voice", voice], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 differences above their limit" in done.stdout and "| batch of 3/logits |" in done.stdout


def test_the_same_seed_says_the_same_and_another_does_not(peer: UpstreamPipeline) -> None:
    sampling = SamplingParams(min_steps=6, max_steps=6)
    first, again, other = (
        peer.speak(["seven eight"], seed=seed, sampling=sampling, speaker=None) for seed in (1, 1, 2)
    )
    assert np.array_equal(first.codes[0], again.codes[0]) and np.array_equal(first.audio[0], again.audio[0])
    assert not np.array_equal(first.codes[0], other.codes[0])


def test_replay_says_the_given_codes_and_reaches_the_same_audio(peer: UpstreamPipeline) -> None:
    free = peer.speak(["seven eight"], seed=3, sampling=SamplingParams(min_steps=8, max_steps=8))
    replayed = peer.replay(["seven eight"], free.codes)
    assert np.array_equal(replayed.codes[0], free.codes[0])
    assert np.abs(replayed.audio[0] - free.audio[0]).max() < 1e-6
    assert replayed.ended == (True,)
    assert len(replayed.step_s) == 8 and min(replayed.step_s) > 0  # 7 further codes, and the end mark
    assert replayed.decoder_s and replayed.vocoder_s


def test_rows_of_a_replayed_batch_keep_their_own_length(peer: UpstreamPipeline) -> None:
    codes = [np.full((5, 4), 7), np.full((3, 4), 11)]
    spoken = peer.replay(["seven", "eight nine"], codes)
    assert all(np.array_equal(said, given) for said, given in zip(spoken.codes, codes, strict=True))
    assert [len(audio) for audio in spoken.audio] == [256 * 9, 256 * 5]


def test_a_row_that_ends_stops_there(peer: UpstreamPipeline) -> None:
    """At a high temperature the end mark comes soon; no row says it, and no row goes on after it."""
    spoken = peer.speak(
        ["seven"],
        seed=5,
        sampling=SamplingParams(temperature=50.0, top_p=None, top_k=None, max_steps=2000, min_steps=1),
    )
    assert spoken.ended == (True,) and 1 <= len(spoken.codes[0]) < 2000
    assert spoken.codes[0].max() < SMALL.gpt.end_code
    assert len(spoken.audio[0]) == 256 * (2 * len(spoken.codes[0]) - 1)


def test_memory_and_versions_are_of_that_process(peer: UpstreamPipeline) -> None:
    assert peer.versions["chattts"] == "0.2.5"
    memory = peer.memory()
    assert memory["peak_rss_bytes"] >= memory["rss_bytes"] > 10_000_000
