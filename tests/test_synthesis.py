from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labkit.engines.base import StepOutput
from labkit.errors import LabError, SpecError, TextError
from labkit.model.config import (
    AudioConfig,
)
from labkit.model.sampling import SamplingParams
from labkit.spec import Recipe
from labkit.synthesis import Request, prepare, speak, stream
from labkit.synthesis.render import Reach
from labkit.text.check import DomainWarning
from labkit.text.numbers import DIGITS
from labkit.voices import Voice


@pytest.fixture(scope="module")
def voice(tiny_voice: Voice) -> Voice:
    return tiny_voice


@pytest.fixture(scope="module", params=["hidden", "codes"])
def stages(request: pytest.FixtureRequest, voice: Voice) -> Iterator[Any]:
    yield from _open(voice, request.param)


@pytest.fixture(scope="module")
def hidden_stages(voice: Voice) -> Iterator[Any]:
    yield from _open(voice, "hidden")


def _open(voice: Voice, audio_path: Any) -> Iterator[Any]:
    from labkit.pipeline import open_pipeline

    with open_pipeline(Recipe(name="torch-fp32"), voice, audio_path=audio_path) as pipeline:
        yield pipeline


class ScriptedGpt:
    """Row r draws END at step ends[r] (never when None); `undecided` rows toss a coin at their first step."""

    def __init__(self, ends: list[int | None], undecided: tuple[int, ...] = (), broken_at: int | None = None):
        self.ends, self.undecided, self.broken_at = ends, undecided, broken_at
        self.fed: list[np.ndarray] = []
        self.capacity = self.width = 0

    def reset(self, batch: int, capacity: int) -> None:
        self.fed, self.capacity = [], capacity

    def prefill(self, ids: np.ndarray, mask: np.ndarray, speaker: np.ndarray | None) -> StepOutput:
        self.prompt = (ids, mask, speaker)
        return self._out()

    def step(self, codes: np.ndarray) -> StepOutput:
        self.fed.append(codes.copy())
        return self._out()

    def _out(self) -> StepOutput:
        step, batch = len(self.fed), len(self.ends)
        logits = np.full((batch, 4, 626), -30.0, np.float32)
        logits[:, :, 7 + step % 3] = 10.0
        for row, end in enumerate(self.ends):
            if end is not None and step >= end:
                logits[row, step % 4, 625] = 30.0
            if row in self.undecided and step == 0:
                logits[row, 2, 625] = 10.0
        if self.broken_at == step:
            logits[-1, 0, 0] = np.nan
        return StepOutput(logits, np.full((batch, self.width), step, np.float32))


def _scripted(voice: Voice, gpt: ScriptedGpt) -> Any:
    gpt.width = voice.config.gpt.hidden
    return SimpleNamespace(
        gpt=gpt,
        decoder=lambda features: np.repeat(features[:, :, :1], 2, 1).repeat(100, 2).transpose(0, 2, 1),
        vocoder=lambda mel: np.repeat(mel[:, 0], 256, -1)[:, 256:],
        voice=voice,
        audio_path="hidden",
    )  # fmt: skip


def _requests(voice: Voice, count: int = 3, **changes: Any) -> list[Request]:
    texts = ["one two three four five six", "seven", "eight nine"]
    speakers = [voice.speaker("random-0"), None, voice.speaker("random-1")]
    return [Request(texts[i % 3], speakers[i % 3], seed=i, **changes) for i in range(count)]


def test_the_same_seed_gives_the_same_codes_alone_and_in_any_batch(hidden_stages: Any, voice: Voice) -> None:
    requests = _requests(voice)
    together = speak(hidden_stages, requests, max_steps=12)
    backwards = speak(hidden_stages, requests[::-1], max_steps=12)[::-1]
    for i, request in enumerate(requests):
        (alone,) = speak(hidden_stages, [request], max_steps=12)
        assert np.array_equal(alone.codes, together[i].codes)
        assert np.array_equal(alone.codes, backwards[i].codes)
        np.testing.assert_allclose(alone.audio, together[i].audio, atol=1e-4)


def test_seed_and_row_key_the_draw(hidden_stages: Any, voice: Voice) -> None:
    base = _requests(voice, 1)[0]
    variants = [base, dataclasses.replace(base, seed=9), dataclasses.replace(base, row=1)]
    codes = [u.codes for u in speak(hidden_stages, variants, max_steps=8)]
    assert not np.array_equal(codes[0], codes[1]) and not np.array_equal(codes[0], codes[2])


@given(chunk=st.integers(1, 60), first=st.integers(1, 40), steps=st.integers(1, 60))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joined_chunks_equal_the_whole_utterance(
    stages: Any, voice: Voice, chunk: int, first: int, steps: int
) -> None:
    codes = np.random.default_rng(steps).integers(0, 625, (steps, 4))
    request = Request("one two", voice.speaker("random-0"))
    (whole,) = speak(stages, [request], replay=[codes])
    chunks = stream(stages, request, replay=codes, chunk_steps=chunk, first_chunk_steps=first)
    parts = list(chunks)
    joined = np.concatenate([part.audio for part in parts])
    assert joined.shape == whole.audio.shape == (512 * steps - 256,)
    np.testing.assert_allclose(joined, whole.audio, atol=1e-5)
    assert [part.first for part in parts] == [i == 0 for i in range(len(parts))]
    assert [part.last for part in parts] == [i == len(parts) - 1 for i in range(len(parts))]
    assert chunks.utterance is not None
    assert np.array_equal(chunks.utterance.audio, joined) and np.array_equal(chunks.utterance.codes, codes)


def test_streaming_says_the_same_as_speaking(hidden_stages: Any, voice: Voice) -> None:
    request = _requests(voice, 1)[0]
    (whole,) = speak(hidden_stages, [request], max_steps=70)
    chunks = stream(hidden_stages, request, max_steps=70)
    assert len(list(chunks)) > 2
    assert chunks.utterance is not None and np.array_equal(chunks.utterance.codes, whole.codes)


def test_the_first_chunk_comes_as_soon_as_its_audio_is_final(hidden_stages: Any, voice: Voice) -> None:
    reach = Reach.of(voice.config, "hidden")
    chunk = next(stream(hidden_stages, _requests(voice, 1)[0], first_chunk_steps=3, max_steps=100))
    assert chunk.steps == 3 + reach.lookahead_steps
    assert 3 * 512 <= len(chunk.audio) < 4 * 512


def test_streaming_work_grows_linearly(hidden_stages: Any, voice: Voice) -> None:
    def frames(steps: int) -> int:
        widths: list[int] = []
        counting = SimpleNamespace(
            **{n: getattr(hidden_stages, n) for n in ("gpt", "decoder", "voice", "audio_path")}
        )
        counting.vocoder = lambda mel: (widths.append(mel.shape[2]), hidden_stages.vocoder(mel))[1]
        codes = np.zeros((steps, 4), np.int64)
        list(stream(counting, Request("one"), replay=codes, chunk_steps=10, first_chunk_steps=10))
        return sum(widths)

    short, long = frames(60), frames(120)
    assert long < 2.6 * short


def test_reach_is_exactly_how_far_the_networks_look(voice: Voice) -> None:
    import torch

    from labkit.model.checkpoint import load_decoder, load_dvae, load_vocoder

    steps, middle = 60, 60  # mel frames 2 * steps; the frame under test
    for audio_path, network in (("hidden", load_decoder(voice.folder)), ("codes", load_dvae(voice.folder))):
        reach = Reach.of(voice.config, audio_path)
        width = voice.config.dvae.vq_dim if audio_path == "codes" else voice.config.gpt.hidden
        features = torch.randn(1, width, steps, requires_grad=True)
        network.decode_features(features)[0, :, middle].sum().backward()
        halves = features.grad[0].unflatten(0, (2, -1)).abs().sum(1)  # [2, steps]
        touched = halves.T.flatten().nonzero().flatten()  # mel frames
        assert (touched.min(), touched.max()) == (middle - reach.decoder, middle + reach.decoder)
    mel = torch.randn(1, 100, 2 * steps, requires_grad=True)
    real, _ = load_vocoder(voice.folder).spectrum(mel)
    real[0, :, middle].sum().backward()
    touched = mel.grad[0].abs().sum(0).nonzero().flatten()
    assert (touched.min(), touched.max()) == (middle - reach.vocoder, middle + reach.vocoder)


def test_a_row_ends_when_any_codebook_draws_the_end_mark(voice: Voice) -> None:
    said = speak(_scripted(voice, ScriptedGpt([2, 3, 5])), _requests(voice))
    assert [len(u.codes) for u in said] == [2, 3, 5]
    assert all(u.ended and u.flags == () for u in said)
    assert [len(u.audio) for u in said] == [512 * n - 256 for n in (2, 3, 5)]
    assert [u.hidden[:, 0].tolist() for u in said] == [[0, 1], [0, 1, 2], [0, 1, 2, 3, 4]]


def test_quiet_samples_are_kept(voice: Voice) -> None:
    (said,) = speak(_scripted(voice, ScriptedGpt([6])), _requests(voice, 1))
    assert len(said.audio) == 512 * 6 - 256 and (said.audio[:256] == 0).all()


def test_a_row_that_ends_at_once_is_flagged_and_spares_the_others(voice: Voice) -> None:
    said = speak(_scripted(voice, ScriptedGpt([0, 4, 0])), _requests(voice))
    assert [u.flags for u in said] == [("immediate_end",), (), ("immediate_end",)]
    assert [u.audio.shape for u in said] == [(0,), (512 * 4 - 256,), (0,)]


def test_an_undecided_first_step_is_drawn_again_with_other_noise(voice: Voice) -> None:
    flags = []
    for seed in range(24):
        request = Request("one", seed=seed)
        (said,) = speak(_scripted(voice, ScriptedGpt([5], undecided=(0,))), [request])
        (again,) = speak(_scripted(voice, ScriptedGpt([5], undecided=(0,))), [request])
        assert np.array_equal(said.codes, again.codes) and said.flags == again.flags
        flags.append(said.flags)
    assert ("retried_start",) in flags and () in flags


def test_greedy_speech_is_not_drawn_again(voice: Voice) -> None:
    (said,) = speak(
        _scripted(voice, ScriptedGpt([0])), [Request("one", sampling=SamplingParams(greedy=True))]
    )
    assert said.flags == ("immediate_end",)


def test_limits_are_flagged_row_by_row(voice: Voice) -> None:
    requests = [Request("one", sampling=SamplingParams(max_steps=3)), Request("two"), Request("three")]
    said = speak(_scripted(voice, ScriptedGpt([None, None, 4])), requests, max_steps=6)
    assert [len(u.codes) for u in said] == [3, 6, 4]
    assert [u.flags for u in said] == [("hit_max",), ("hit_max",), ()]
    assert [u.ended for u in said] == [False, False, True]


def test_speech_stops_where_the_voice_has_no_more_positions(voice: Voice) -> None:
    gpt = ScriptedGpt([None])
    (said,) = speak(_scripted(voice, gpt), [Request("one")])
    assert gpt.capacity == voice.config.gpt.positions and said.flags == ("hit_max",)
    assert len(said.codes) == voice.config.gpt.positions - gpt.prompt[0].shape[1]


@pytest.mark.parametrize("step", [0, 2])
def test_non_finite_logits_name_the_stage_the_step_and_the_text(voice: Voice, step: int) -> None:
    with pytest.raises(
        LabError, match=f"stage gpt: its logits are not finite at step {step}, row 1 .*'seven'"
    ):
        speak(_scripted(voice, ScriptedGpt([None, None], broken_at=step)), _requests(voice, 2), max_steps=5)


def test_replay_feeds_exactly_the_given_codes(voice: Voice) -> None:
    given_codes = [np.full((3, 4), 11), np.full((5, 4), 22)]
    gpt = ScriptedGpt([0, 0])  # would end at once if it were asked
    said = speak(_scripted(voice, gpt), _requests(voice, 2), replay=given_codes)
    assert [u.codes.tolist() for u in said] == [c.tolist() for c in given_codes]
    assert [int(fed[1, 0]) for fed in gpt.fed] == [22] * 5 and len(said[0].timings.step_s) == 5
    assert all(u.ended and u.flags == () and u.timings.sample_s == 0 for u in said)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([np.zeros((3, 3), int)], r"shape \(3, 3\)"),
        ([np.zeros((0, 4), int)], r"shape \(0, 4\)"),
        ([np.full((3, 4), 625)], r"0\.\.624"),
        ([np.zeros((3, 4), int)] * 2, "2 rows of codes for 1 requests"),
        ([np.zeros((400, 4), int)], "400 steps do not fit"),
    ],
)
def test_impossible_replays_are_refused(voice: Voice, codes: list[np.ndarray], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        speak(_scripted(voice, ScriptedGpt([2])), _requests(voice, 1), replay=codes)


def test_prompts_are_padded_left_and_speakers_stand_beside_their_rows(voice: Voice) -> None:
    gpt = ScriptedGpt([1, 1, 1])
    requests = _requests(voice)
    speak(_scripted(voice, gpt), requests)
    ids, mask, speaker = gpt.prompt
    tokenizer = voice.tokenizer()
    for i, request in enumerate(requests):
        who = "[spk_emb]" if request.speaker else "[empty_spk]"
        assert ids[i][mask[i]].tolist() == tokenizer.encode(f"[Stts]{who}[speed_5]{request.text}[Ptts]")
        assert mask[i].tolist() == sorted(mask[i].tolist())
    assert np.allclose(np.linalg.norm(speaker, axis=1), [1, 0, 1], atol=1e-3)


def test_no_speaker_at_all_is_none(voice: Voice) -> None:
    gpt = ScriptedGpt([1])
    speak(_scripted(voice, gpt), [Request("one")])
    assert gpt.prompt[2] is None


def test_an_observer_sees_every_step_before_its_codes_are_drawn(voice: Voice) -> None:
    seen: list[tuple[int, float]] = []
    stages = _scripted(voice, ScriptedGpt([3]))
    speak(stages, [Request("one")], observe=lambda step, out: seen.append((step, float(out.hidden[0, 0]))))
    assert seen == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]


def test_timings_add_up(hidden_stages: Any, voice: Voice) -> None:
    (said,) = speak(hidden_stages, _requests(voice, 1), max_steps=10)
    t = said.timings
    parts = t.prepare_s + t.prefill_s + t.decode_s + t.sample_s + t.decoder_s + t.vocoder_s
    assert 0 < parts <= t.total_s and 0 < t.first_step_s < t.total_s and t.refine_s is None
    assert len(t.step_s) == len(said.codes) - 1  # the tenth step hit the limit: nothing was fed after it


def test_non_finite_audio_is_a_flag(voice: Voice) -> None:
    stages = _scripted(voice, ScriptedGpt([2]))
    stages.vocoder = lambda mel: np.full((1, 256 * (mel.shape[2] - 1)), np.nan, np.float32)
    assert speak(stages, [Request("one")])[0].flags == ("non_finite_audio",)


@pytest.mark.parametrize("text", ["", "?!", "[laugh]", "😀", "a" * 20_000, "a " * 600])
def test_bad_text_is_refused_before_any_stage_runs(voice: Voice, text: str) -> None:
    with pytest.raises(TextError):
        speak(SimpleNamespace(voice=voice), [Request("one"), Request(text)])  # type: ignore[arg-type]


def test_no_requests_and_bad_sizes_are_refused(hidden_stages: Any) -> None:
    with pytest.raises(SpecError, match="no requests"):
        speak(hidden_stages, [])
    with pytest.raises(SpecError, match="chunk_steps=0"):
        stream(hidden_stages, Request("one"), chunk_steps=0)
    with pytest.raises(SpecError, match="max_steps=0"):
        speak(hidden_stages, [Request("one")], max_steps=0)
    with pytest.raises(SpecError, match="style 'fast'"):
        Request("one", style="fast")


def test_words_outside_the_domain_are_named_and_reported(voice: Voice) -> None:
    small = dataclasses.replace(voice, card=dataclasses.replace(voice.card, domain_words=DIGITS))
    with pytest.warns(DomainWarning, match="'apples'"):
        prepared = prepare(small, Request("3 apples, 12."))
    assert prepared.text == "three apples, one two." and prepared.report.unknown_words == ("apples",)
    assert prepared.report.number_reading == "digits"


class ScriptedText(ScriptedGpt):
    """Also writes text: its hidden states point at the text tokens of a script, one after another."""

    def __init__(self, script: list[int], head: np.ndarray):
        super().__init__([])
        self.script, self.head, self.written = script, head, 0

    def prefill(self, ids: np.ndarray, mask: np.ndarray, speaker: np.ndarray | None) -> StepOutput:
        super().prefill(ids, mask, speaker)
        self.ends = [2] * len(ids)
        return self._text()

    def step_text(self, ids: np.ndarray) -> StepOutput:
        self.written += 1
        return self._text()

    def _text(self) -> StepOutput:
        out = self._out()
        token = self.script[min(self.written, len(self.script) - 1)]
        toward = self.head[token] / np.linalg.norm(self.head[token]) ** 2
        return StepOutput(out.logits, np.tile(1000 * toward, (len(self.ends), 1)).astype(np.float32))


@pytest.mark.parametrize(
    ("script", "text", "flags"),
    [
        (["b", "[uv_break]", "a", "[break_1]", "[speed_2]", "[Ebreak]"], "b [uv_break] a", ()),
        (["[break_0]", "[Ebreak]"], "three", ("refine_empty",)),
        (["b"], "three", ("refine_hit_max", "refine_too_long")),
    ],
)
def test_refining_rewrites_the_text_first(
    voice: Voice, script: list[str], text: str, flags: tuple[str, ...]
) -> None:
    from labkit.model.checkpoint import load_text_head

    ids = [voice.tokenizer().token_id(token) for token in script]
    gpt = ScriptedText(ids, load_text_head(voice.folder))
    (said, plain) = speak(_scripted(voice, gpt), [Request("three", refine=True), Request("six")])
    assert said.text == text and said.flags == flags and plain.text == "six"
    assert said.timings.refine_s is not None and said.timings.refine_s > 0


def test_refining_with_a_real_network_is_repeatable(hidden_stages: Any) -> None:
    request = Request("one two", refine=True, seed=5)
    first, second = (speak(hidden_stages, [request], max_steps=4)[0] for _ in range(2))
    assert first.text == second.text and first.flags == second.flags
    assert any(flag.startswith("refine") for flag in first.flags) or first.text != "one two"


def test_a_voice_of_few_words_has_no_refine_stage(hidden_stages: Any, voice: Voice) -> None:
    small = dataclasses.replace(voice, card=dataclasses.replace(voice.card, domain_words=DIGITS))
    stages = SimpleNamespace(voice=small, gpt=hidden_stages.gpt, audio_path="hidden")
    with pytest.raises(SpecError, match="no trained refine stage"):
        speak(stages, [Request("one", refine=True)])  # type: ignore[arg-type]


def test_audio_config_matches_the_renderer(voice: Voice) -> None:
    audio = AudioConfig()
    assert (
        audio.samples_per_step == 512
        and Reach.of(voice.config, "hidden").overlap * audio.hop * 2 == audio.n_fft
    )


def test_speaking_needs_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys, labkit.synthesis, labkit.speak, labkit.reference; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent, timeout=60)
