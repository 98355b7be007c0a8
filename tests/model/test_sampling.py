from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from labkit.errors import SpecError
from labkit.model.sampling import (
    CODE_SAMPLING,
    REFINE_SAMPLING,
    RowNoise,
    SamplingParams,
    draw,
    process_logits,
    sample,
    softmax,
    stack_noise,
)

END = 625
seeds = st.integers(0, 2**32 - 1)


def make(seed: int, batch: int = 2, codebooks: int = 4, vocabulary: int = 626, steps: int = 20):
    """Logits of a believable spread, and a history in which codes repeat."""
    generator = np.random.default_rng(seed)
    logits = (generator.standard_normal((batch, codebooks, vocabulary)) * 2).astype(np.float32)
    history = generator.integers(0, min(vocabulary, 12), (batch, steps, codebooks))
    return logits, history


def in_torch(logits: NDArray, history: NDArray, params: SamplingParams) -> torch.Tensor:
    """The same processing, written in torch from its description, one row after another."""
    rows = []
    flat_history = torch.from_numpy(history).permute(0, 2, 1).flatten(0, 1)
    for scores, past in zip(torch.from_numpy(logits).flatten(0, 1), flat_history, strict=True):
        scores = scores / params.temperature
        counts = torch.bincount(past[-params.repetition_window :], minlength=len(scores))
        power = params.repetition_penalty ** counts.float()
        scores = torch.where(scores < 0, scores * power, scores / power)
        if params.top_p is not None:
            ordered, order = scores.sort()
            removed = ordered.softmax(0).cumsum(0) <= 1 - params.top_p
            removed[-3:] = False
            scores[order[removed]] = -torch.inf
        if params.top_k is not None:
            scores[scores < scores.topk(max(params.top_k, 3)).values[-1]] = -torch.inf
        rows.append(scores)
    return torch.stack(rows).view(logits.shape)


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    st.floats(0.1, 2.0),
    st.one_of(st.none(), st.floats(0.05, 0.999)),
    st.one_of(st.none(), st.integers(1, 60)),
    st.floats(1.0, 1.5),
    st.integers(0, 30),
)
def test_agrees_with_torch(seed, temperature, top_p, top_k, penalty, steps) -> None:
    params = SamplingParams(temperature=temperature, top_p=top_p, top_k=top_k, repetition_penalty=penalty)
    logits, history = make(seed, steps=steps)
    found = process_logits(logits, history, params, step=steps, end=END)
    expected = in_torch(logits, history, params).numpy()
    # a candidate exactly on the edge of top-p may fall on either side of a rounding
    same = np.isfinite(found) == np.isfinite(expected)
    assert (~same).sum() <= 1
    both = np.isfinite(found) & np.isfinite(expected)
    assert np.allclose(found[both], expected[both], rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(seeds, st.floats(0.01, 1.0), st.integers(1, 30))
def test_keeps_at_least_three_and_the_best(seed: int, top_p: float, top_k: int) -> None:
    logits, history = make(seed)
    scores = process_logits(logits, history, SamplingParams(top_p=top_p, top_k=top_k), step=20, end=END)
    kept = np.isfinite(scores).sum(-1)
    assert kept.min() >= 3 and kept.max() <= max(top_k, 3)
    plain = process_logits(logits, history, SamplingParams(top_p=None, top_k=None), step=20, end=END)
    assert np.array_equal(scores.argmax(-1), plain.argmax(-1))


def test_the_input_stays_as_it_was() -> None:
    logits, history = make(0)
    before = logits.copy()
    process_logits(logits, history, CODE_SAMPLING, step=0, end=END)
    assert np.array_equal(logits, before)


def test_repetition_counts_only_its_own_codebook_and_the_last_sixteen_steps() -> None:
    logits = np.full((1, 2, 10), 2.0, np.float32)
    logits[0, 1] = -2.0
    history = np.full((1, 20, 2), 9)
    history[0, :4] = 1  # too long ago to count
    history[0, -3:, 0] = 5
    history[0, -1, 1] = 5
    params = SamplingParams(temperature=1.0, top_p=None, top_k=None, repetition_penalty=1.1)
    scores = process_logits(logits, history, params, step=20, end=9)
    assert scores[0, 0, 5] == pytest.approx(2.0 / 1.1**3)
    assert scores[0, 1, 5] == pytest.approx(-2.0 * 1.1)
    assert scores[0, 0, 1] == 2.0 and scores[0, 1, 1] == -2.0
    assert scores[0, 0, 9] == pytest.approx(2.0 / 1.1**13, rel=1e-6)


def test_the_end_mark_waits_for_min_steps() -> None:
    logits, history = make(1)
    logits[..., END] = 50.0
    params = SamplingParams(min_steps=5)
    assert np.all(process_logits(logits, history, params, step=4, end=END)[..., END] == -np.inf)
    assert np.all(draw(logits, history, SamplingParams(greedy=True), None, step=5, end=END) == END)


@settings(max_examples=30, deadline=None)
@given(seeds, seeds)
def test_a_removed_candidate_is_never_drawn(seed: int, noise_seed: int) -> None:
    logits, history = make(seed)
    noise = stack_noise([RowNoise(noise_seed, 0), RowNoise(noise_seed, 1)], 3, 4, 626)
    codes = draw(logits, history, CODE_SAMPLING, noise, step=20, end=END)
    scores = process_logits(logits, history, CODE_SAMPLING, step=20, end=END)
    assert codes.shape == (2, 4)
    assert np.isfinite(np.take_along_axis(scores, codes[..., None], -1)).all()


def test_draws_what_torch_multinomial_draws_from_the_same_noise() -> None:
    probabilities = torch.rand(50, 40).softmax(-1)
    expected = torch.multinomial(probabilities, 1, generator=torch.Generator().manual_seed(7))[:, 0]
    noise = torch.empty(50, 40).exponential_(1.0, generator=torch.Generator().manual_seed(7))
    assert np.array_equal(sample(probabilities.numpy(), noise.numpy()), expected.numpy())


def test_draws_follow_the_probabilities() -> None:
    probabilities = np.array([[[0.5, 0.3, 0.15, 0.05]]], np.float32)
    row = RowNoise(11, 0)
    draws = [int(sample(probabilities, row.exponential(step, (1, 1, 4)))[0, 0]) for step in range(4000)]
    shares = np.bincount(draws, minlength=4) / 4000
    # 4.5 standard errors of the largest share: sqrt(.25/4000) * 4.5
    assert np.abs(shares - probabilities[0, 0]).max() < 0.036


@settings(max_examples=50, deadline=None)
@given(st.integers(-(2**70), 2**70), st.integers(0, 2**40), st.integers(0, 10**6), st.integers(0, 5))
def test_noise_is_positive_and_a_function_of_its_place(seed: int, row: int, step: int, stream: int) -> None:
    noise = RowNoise(seed, row, stream).exponential(step, (4, 30))
    assert noise.dtype == np.float32 and noise.min() > 0 and np.isfinite(noise).all()
    assert np.array_equal(noise, RowNoise(seed, row, stream).exponential(step, (4, 30)))
    for other in (
        RowNoise(seed + 1, row, stream),
        RowNoise(seed, row + 1, stream),
        RowNoise(seed, row, stream + 1),
    ):
        assert not np.array_equal(noise, other.exponential(step, (4, 30)))
    assert not np.array_equal(noise, RowNoise(seed, row, stream).exponential(step + 1, (4, 30)))


def test_noise_never_changes_between_releases() -> None:
    golden = [[0.000718858209438622, 0.23400935530662537], [1.6973583698272705, 1.6660816669464111]]
    assert np.array_equal(RowNoise(7, 2).exponential(3, (2, 2)), np.array(golden, np.float32))


def test_a_row_draws_the_same_alone_and_in_a_batch() -> None:
    logits, history = make(5, batch=3)
    rows = [RowNoise(1, row) for row in range(3)]
    batch = draw(logits, history, CODE_SAMPLING, stack_noise(rows, 20, 4, 626), step=20, end=END)
    for i, row in enumerate(rows):
        noise = stack_noise([row], 20, 4, 626)
        alone = draw(logits[i : i + 1], history[i : i + 1], CODE_SAMPLING, noise, step=20, end=END)
        assert np.array_equal(alone[0], batch[i])


def test_greedy_takes_the_best_after_the_penalty() -> None:
    logits = np.zeros((1, 1, 10), np.float32)
    logits[0, 0, :2] = 2.0, 1.9
    history = np.zeros((1, 4, 1), np.int64)
    greedy = SamplingParams(greedy=True, repetition_penalty=1.05)
    assert draw(logits, history, greedy, None, step=4, end=9)[0, 0] == 1
    with pytest.raises(ValueError, match="noise"):
        draw(logits, history, CODE_SAMPLING, None, step=4, end=9)


def test_text_sampling_has_one_codebook() -> None:
    logits, history = make(3, codebooks=1, vocabulary=150)
    noise = stack_noise([RowNoise(0, 0), RowNoise(0, 1)], 0, 1, 150)
    assert draw(logits, history, REFINE_SAMPLING, noise, step=0, end=9).shape == (2, 1)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_softmax_is_a_distribution(seed: int) -> None:
    logits, history = make(seed)
    scores = process_logits(logits, history, CODE_SAMPLING, step=0, end=END)
    probabilities = softmax(scores)
    assert np.allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert np.all(probabilities[~np.isfinite(scores)] == 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("temperature", 0.0), ("top_p", 0.0), ("top_p", 1.5), ("top_k", 0), ("repetition_penalty", 0.0)),
        *(("repetition_window", 0), ("max_steps", 0), ("min_steps", -1), ("min_steps", 3000)),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(SpecError, match=f"{field}={value}"):
        SamplingParams(**{field: value})


def test_defaults_are_chattts() -> None:
    p = CODE_SAMPLING
    assert (p.temperature, p.top_p, p.top_k, p.repetition_penalty, p.repetition_window) == (
        0.3,
        0.7,
        20,
        1.05,
        16,
    )
    assert (REFINE_SAMPLING.temperature, REFINE_SAMPLING.repetition_penalty, REFINE_SAMPLING.max_steps) == (
        0.7,
        1.0,
        384,
    )


def test_needs_no_torch() -> None:
    modules = "labkit.model.sampling, labkit.model.speaker, labkit.model.config"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
