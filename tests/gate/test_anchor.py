"""The reference's fingerprint: small, equal to itself, and moved by what must not move."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.gate.anchor import Anchor, compare_anchor, make_anchor
from labkit.gate.figures import Forced

STEPS, WIDTH = 60, 96


def spoken(seed: int = 0) -> tuple[Forced, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    answer = Forced(
        rng.standard_normal((STEPS + 1, 4, 626)).astype(np.float32),
        rng.standard_normal((STEPS + 1, WIDTH)).astype(np.float32),
    )
    seconds = np.arange(512 * STEPS - 256) / 24000
    audio = 0.3 * np.sin(2 * np.pi * (200 + 300 * seconds) * seconds) * np.hanning(len(seconds))
    return answer, rng.integers(0, 625, (STEPS, 4)), audio.astype(np.float32)


def test_the_reference_agrees_with_its_own_fingerprint() -> None:
    answer, codes, audio = spoken()
    forced, acoustic = compare_anchor(answer, audio, make_anchor(answer, codes, audio))
    assert forced["top1"] == 1 and forced["nll_delta"] == pytest.approx(0, abs=1e-6)
    assert forced["hidden_error"] < 1e-3 and acoustic["log_mel_db"] == 0


def test_it_survives_a_file(tmp_path) -> None:
    answer, codes, audio = spoken()
    anchor = make_anchor(answer, codes, audio)
    np.savez(tmp_path / "a.npz", **anchor.arrays("x"))
    with np.load(tmp_path / "a.npz") as stored:
        again = Anchor.from_arrays(dict(stored), "x")
    assert compare_anchor(answer, audio, again) == compare_anchor(answer, audio, anchor)


def test_it_is_small() -> None:
    answer, codes, audio = spoken()
    arrays = make_anchor(answer, codes, audio).arrays("x").values()
    assert sum(array.nbytes for array in arrays) < 6000 * STEPS / 47


@pytest.mark.parametrize("size", [0.05, 0.2])
def test_hidden_states_that_moved_are_seen_at_their_size(size: float) -> None:
    answer, codes, audio = spoken()
    anchor = make_anchor(answer, codes, audio)
    rng = np.random.default_rng(1)
    moved = answer.hidden + size * rng.standard_normal(answer.hidden.shape)
    found, _ = compare_anchor(Forced(answer.logits, moved.astype(np.float32)), audio, anchor)
    assert found["hidden_error"] == pytest.approx(size, rel=0.25)


def test_a_softer_voice_and_a_low_pass_are_seen() -> None:
    answer, codes, audio = spoken()
    anchor = make_anchor(answer, codes, audio)
    _, softer = compare_anchor(answer, audio * 0.5, anchor)
    spectrum = np.fft.rfft(audio)
    spectrum[len(spectrum) // 20 :] = 0
    _, dull = compare_anchor(answer, np.fft.irfft(spectrum, len(audio)).astype(np.float32), anchor)
    assert softer["log_mel_db"] > 0.3 and dull["log_mel_db"] > 0.3


def test_another_length_is_refused() -> None:
    answer, codes, audio = spoken()
    anchor = make_anchor(answer, codes, audio)
    with pytest.raises(ValueError, match="not as long"):
        compare_anchor(answer, audio[:-5000], anchor)
    with pytest.raises(ValueError, match="60 steps"):
        compare_anchor(Forced(answer.logits[:-1], answer.hidden[:-1]), audio, anchor)
