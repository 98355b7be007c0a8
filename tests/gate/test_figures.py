"""Tier 1: figures of two recipes on the same tokens, against numbers worked out by other ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.special import softmax as scipy_softmax

from labkit.gate.figures import Forced, compare_forced, drawn_distributions
from labkit.model.sampling import RowNoise, SamplingParams, draw

PARAMS = SamplingParams()
SEED, STEPS, BOOKS, CODES, WIDTH = 5, 12, 4, 30, 6


def answer(seed: int = 0, noise: float = 0.0) -> Forced:
    rng = np.random.default_rng(0)
    logits, hidden = (
        rng.standard_normal((STEPS + 1, BOOKS, CODES)) * 3,
        rng.standard_normal((STEPS + 1, WIDTH)),
    )
    other = np.random.default_rng(seed)
    logits = logits + noise * other.standard_normal(logits.shape)
    hidden = hidden * (1 + noise)
    return Forced(logits.astype(np.float32), hidden.astype(np.float32))


def drawn_codes(forced: Forced, seed: int = SEED) -> np.ndarray:
    """What free generation draws when each step's answer is this one's."""
    noise, codes = RowNoise(seed, 0), np.zeros((1, 0, BOOKS), np.int64)
    for t in range(STEPS):
        exponential = noise.exponential(t, (BOOKS, CODES))[None]
        row = draw(forced.logits[None, t], codes, PARAMS, exponential, step=t, end=CODES - 1)
        codes = np.concatenate([codes, row[:, None]], 1)
    return codes[0]


def test_a_recipe_equals_itself_and_draws_its_own_tokens_again() -> None:
    same = answer()
    found = compare_forced(same, same, drawn_codes(same), params=PARAMS, seed=SEED)
    zero = {
        "kl",
        "total_variation",
        "kl_drawn",
        "total_variation_drawn",
        "nll_delta",
        "hidden_error",
        "flips",
    }
    assert {name for name in zero if found.values[name] != 0} == set()
    assert found.values["top1"] == 1 and found.values["first_flip_steps"] == STEPS


def test_divergences_are_the_textbook_s() -> None:
    before, after = answer(), answer(1, noise=0.3)
    found = compare_forced(before, after, drawn_codes(before), params=PARAMS, seed=SEED)
    p, q = (scipy_softmax(each.logits.astype(np.float64), -1) for each in (before, after))
    assert found.values["kl"] == pytest.approx(rel_entr(p, q).sum(-1).mean())
    assert found.values["total_variation"] == pytest.approx(np.abs(p - q).sum(-1).mean() / 2)
    assert found.values["top1"] == pytest.approx((p.argmax(-1) == q.argmax(-1)).mean())
    assert found.values["hidden_error"] == pytest.approx(0.3, abs=1e-6)
    assert np.mean(found.by_codebook["kl"]) == pytest.approx(found.values["kl"])
    assert found.kl_steps.shape == (STEPS + 1, BOOKS)


def test_negative_log_likelihood_is_that_of_the_reference_s_tokens() -> None:
    before, after = answer(), answer(1, noise=0.5)
    codes = drawn_codes(before)
    found = compare_forced(before, after, codes, params=PARAMS, seed=SEED).values
    p = scipy_softmax(after.logits.astype(np.float64), -1)
    picked = [p[t, c, codes[t, c]] for t in range(STEPS) for c in range(BOOKS)]
    assert found["nll"] == pytest.approx(-np.log(picked).mean())
    itself = compare_forced(before, before, codes, params=PARAMS, seed=SEED).values["nll"]
    assert found["nll_delta"] == pytest.approx(found["nll"] - itself)


def test_first_flip_is_the_step_at_which_free_speech_would_part() -> None:
    before, after = answer(), answer(2, noise=0.8)
    codes = drawn_codes(before)
    found = compare_forced(before, after, codes, params=PARAMS, seed=SEED).values
    first = int(found["first_flip_steps"])
    assert first < STEPS and found["flips"] > 0
    # freely, the other recipe draws the same codes up to that step, and others in it
    free = drawn_codes(after)
    assert (free[:first] == codes[:first]).all() and (free[first] != codes[first]).any()


def test_a_candidate_that_rules_out_what_may_be_drawn_diverges_by_a_finite_number() -> None:
    before = answer()
    after = Forced(-before.logits, before.hidden)
    found = compare_forced(before, after, drawn_codes(before), params=PARAMS, seed=SEED).values
    assert 1 < found["kl_drawn"] < 14 and found["total_variation_drawn"] > 0.9


def test_drawn_distributions_hold_at_most_top_k() -> None:
    forced = answer()
    drawn = drawn_distributions(forced.logits, drawn_codes(forced), PARAMS)
    assert drawn.sum(-1) == pytest.approx(1.0) and ((drawn > 0).sum(-1) <= 20).all()


def test_answers_of_another_length_are_refused() -> None:
    same = answer()
    with pytest.raises(ValueError, match="11 steps"):
        compare_forced(same, same, drawn_codes(same)[:-1], params=PARAMS, seed=SEED)
