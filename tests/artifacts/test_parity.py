from __future__ import annotations

import numpy as np
import pytest

from labkit.artifacts.parity import check_gpt, check_network, gpt_cases
from labkit.engines.base import StepOutput
from labkit.errors import ParityError


class FakeGpt:
    """Says something that depends on all it was told; `error` is added to the logits of batches of one."""

    def __init__(self, error: float = 0.0) -> None:
        self.error = error

    def reset(self, batch: int, capacity: int) -> None:
        self.state = np.zeros((batch, 8), np.float32)

    def prefill(self, ids, mask, speaker) -> StepOutput:
        self.state += (ids * mask).sum(1, keepdims=True) / 100 + speaker
        return self._say()

    def step(self, codes) -> StepOutput:
        self.state += codes.sum(1, keepdims=True) / 100
        return self._say()

    def _say(self) -> StepOutput:
        wrong = self.error if len(self.state) == 1 else 0.0
        logits = np.sin(np.arange(8) * self.state)[:, None] + wrong
        return StepOutput(np.repeat(logits, 4, 1).astype(np.float32), np.cos(self.state))


def check(error: float, kind: str):
    return check_gpt(FakeGpt(), FakeGpt(error), vocabulary=50, speaker_token=3, codes=20, width=8, cases=gpt_cases(100),
                     kind=kind)  # fmt: skip


def test_equal_stages_pass_in_every_case() -> None:
    figures = check(0.0, "exact")
    assert {(each.case, each.output) for each in figures} == {
        (case.name, output) for case in gpt_cases(100) for output in ("logits", "hidden")
    }
    assert all(each.max_abs == 0 and each.cosine == pytest.approx(1) for each in figures)


def test_a_small_error_is_refused_for_an_export_and_recorded_for_a_quantized_stage() -> None:
    with pytest.raises(ParityError, match=r"logits of the 'smallest' case differs from torch by 0.01"):
        check(0.01, "exact")
    worst = max(each.max_abs for each in check(0.01, "quantized"))
    assert worst == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize("kind", ["quantized", "coarse"])
@pytest.mark.parametrize("error", [50.0, float("nan")])
def test_a_broken_quantized_stage_is_refused(error: float, kind: str) -> None:
    with pytest.raises(ParityError, match="Nothing was cached"):
        check(error, kind)


def test_four_bits_are_allowed_more_than_eight() -> None:
    check(0.5, "coarse")
    with pytest.raises(ParityError, match=r"less than 0\.9"):
        check(0.5, "quantized")


def test_nan_is_not_equal_to_anything() -> None:
    with pytest.raises(ParityError):
        check(float("nan"), "exact")


def test_networks_are_compared_at_several_lengths_and_by_shape() -> None:
    seen = []

    def example(batch: int, steps: int) -> np.ndarray:
        seen.append((batch, steps))
        return np.ones((batch, steps), np.float32)

    figures = check_network(
        lambda x: x, lambda x: x + 5e-6, example, stage="vocoder", output="audio", kind="exact"
    )
    assert len(seen) == len(figures) >= 3
    assert (1, 1) in seen and max(batch for batch, _ in seen) > 1
    with pytest.raises(ParityError, match="vocoder: audio"):
        check_network(lambda x: x, lambda x: x + 2e-5, example, stage="vocoder", output="audio", kind="exact")
    with pytest.raises(ParityError, match="shape"):
        check_network(lambda x: x, lambda x: x[:, :-1], example, stage="decoder", output="mel", kind="exact")


def test_the_longest_case_fits_the_voice() -> None:
    for positions in (30, 100, 4096):
        for cases in (gpt_cases(positions), gpt_cases(positions, with_largest=True)):
            assert all(max(case.lengths) + case.steps <= positions for case in cases)
    assert gpt_cases(100, with_largest=True)[-1].lengths[0] + 4 == 100
