"""The recipe around a worker that answers from a script."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labkit.model.sampling import RowNoise, SamplingParams
from labkit.model.speaker import SpeakerEmbedding
from labkit.upstream.cases import SMALL
from labkit.upstream.client import Reply
from labkit.upstream.pipeline import UpstreamPipeline

WIDTH = SMALL.gpt.hidden


class FakeProcess:
    """Answers `speak` with rows of the given lengths and keeps what it was asked."""

    pid = 1

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths
        self.asked: dict[str, Any] = {}

    def call(self, command: str, arrays: dict[str, Any] | None = None, **fields: Any) -> Reply:
        if command == "hello":
            return Reply({"versions": {"chattts": "0.2.5"}}, {})
        self.asked = {**(arrays or {}), **fields}
        longest = max(self.lengths, default=0)
        answer: dict[str, Any] = {}
        for row, length in enumerate(self.lengths):
            answer[f"codes_{row}"] = np.full((length, 4), row)
            answer[f"hidden_{row}"] = np.zeros((length, WIDTH), np.float32)
            answer[f"audio_{row}"] = np.ones(256 * (2 * longest - 1), np.float32)
        stages = {"decoder": {"wall_s": 0.5, "cpu_s": 0.4}, "vocoder": {"wall_s": 0.25, "cpu_s": 0.2}}
        reply = {
            "lengths": list(self.lengths),
            "gpt_wall_s": [2.0, 1.0, 1.0],
            "gpt_cpu_s": [1.0, 0.5, 0.5],
            "stage_s": stages if self.lengths else {},
            "rss_bytes": 10,
            "peak_rss_bytes": 20,
        }
        return Reply(reply, answer)


def pipeline(process: FakeProcess) -> UpstreamPipeline:
    return UpstreamPipeline(process, SMALL, {"load_s": 1.0, "import_s": 0.5})  # type: ignore[arg-type]


def test_speaking_sends_the_labs_noise_and_settings() -> None:
    process = FakeProcess(3, 3)
    speaker = SpeakerEmbedding(np.arange(1, WIDTH + 1, dtype=np.float16))
    sampling = SamplingParams(max_steps=5, temperature=0.5, min_steps=2)
    pipeline(process).speak(["one", "two"], speaker=speaker, seed=9, sampling=sampling)
    asked = process.asked
    assert asked["noise"].shape == (5, 8, 626)
    assert np.array_equal(asked["noise"][3, 4:], RowNoise(9, 1).exponential(3, (4, 626)))
    assert asked["sampling"] == {
        "temperature": 0.5,
        "top_P": 0.7,
        "top_K": 20,
        "repetition_penalty": 1.05,
        "max_new_token": 5,
        "min_new_token": 2,
    }
    assert asked["speaker"] == speaker.to_string()


def test_what_was_said_is_cut_to_each_rows_length_and_times_are_told_apart() -> None:
    spoken = pipeline(FakeProcess(3, 5)).speak(["one", "two"], sampling=SamplingParams(max_steps=5))
    assert [len(audio) for audio in spoken.audio] == [256 * 5, 256 * 9]
    assert [codes.shape for codes in spoken.codes] == [(3, 4), (5, 4)]
    assert spoken.ended == (True, False)
    assert (spoken.prefill_s, spoken.step_s) == (2.0, (1.0, 1.0))
    assert (spoken.decoder_s, spoken.vocoder_s, spoken.total_s) == (0.5, 0.25, 4.75)
    assert spoken.cpu_s == pytest.approx(2.6)


def test_a_batch_that_ends_at_once_is_empty_and_its_stages_were_not_measured() -> None:
    spoken = pipeline(FakeProcess()).speak(["one", "two"], sampling=SamplingParams(max_steps=5))
    assert [audio.size for audio in spoken.audio] == [0, 0]
    assert spoken.codes[1].shape == (0, 4) and spoken.hidden[1].shape == (0, WIDTH)
    assert spoken.ended == (True, True)
    assert spoken.decoder_s is None and spoken.vocoder_s is None


def test_replay_forces_each_rows_codes_and_then_its_end_mark() -> None:
    process = FakeProcess(2, 1)
    two, one = np.arange(8).reshape(2, 4), np.arange(8, 12).reshape(1, 4)
    spoken = pipeline(process).replay(["one", "two"], [two, one])
    end = [625] * 4
    assert process.asked["codes"].tolist() == [[*two[0], *one[0]], [*two[1], *end], [*end, *end]]
    assert process.asked["sampling"] == {"max_new_token": 3, "min_new_token": 0}
    assert spoken.ended == (True, True)


@pytest.mark.parametrize("sampling", [SamplingParams(greedy=True), SamplingParams(repetition_window=8)])
def test_sampling_that_upstream_lacks_is_refused(sampling: SamplingParams) -> None:
    with pytest.raises(ValueError, match="upstream cannot sample"):
        pipeline(FakeProcess(1)).speak(["one"], sampling=sampling)
