from __future__ import annotations

import numpy as np
import pytest

from labkit.model.sampling import RowNoise, sample

torch = pytest.importorskip("torch")

from labkit.upstream.worker.draws import Draws  # noqa: E402

ORIGINAL = torch.multinomial


def probabilities(rows: int = 4, width: int = 30) -> torch.Tensor:
    return torch.softmax(torch.randn(rows, width, generator=torch.Generator().manual_seed(1)), -1)


def test_multinomial_of_one_is_the_largest_quotient_by_exponential_noise() -> None:
    """The fact that the whole comparison of drawn codes rests on."""
    p = probabilities(50)
    drawn = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(3))[:, 0]
    noise = torch.empty_like(p).exponential_(generator=torch.Generator().manual_seed(3))
    assert torch.equal(drawn, (p / noise).argmax(-1))


def test_given_noise_draws_what_the_lab_draws() -> None:
    p = probabilities()
    noise = np.stack([RowNoise(0, 0).exponential(step, (4, 30)) for step in range(2)])
    with Draws(noise=noise) as draws:
        drawn = [torch.multinomial(p, num_samples=1) for _ in range(2)]
    for step in range(2):
        assert np.array_equal(drawn[step][:, 0].numpy(), sample(p.numpy(), noise[step]))
    assert not np.array_equal(drawn[0].numpy(), drawn[1].numpy())
    assert draws.drawn == 2 and len(draws.wall_s()) == 2 and min(draws.cpu_s()) >= 0


def test_given_codes_are_returned_and_the_real_draw_still_happens() -> None:
    codes = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    generator = torch.Generator().manual_seed(0)
    before = generator.get_state()
    with Draws(codes=codes):
        first = torch.multinomial(probabilities(), num_samples=1, generator=generator)
        second = torch.multinomial(probabilities(), num_samples=1)
    assert first.tolist() == [[1], [2], [3], [4]] and second.tolist() == [[5], [6], [7], [8]]
    assert not torch.equal(before, generator.get_state())


def test_running_out_is_an_error_and_upstreams_draw_is_put_back() -> None:
    with pytest.raises(IndexError, match="given for 1 steps"), Draws(codes=np.zeros((1, 4), np.int64)):
        torch.multinomial(probabilities(), num_samples=1)
        torch.multinomial(probabilities(), num_samples=1)
    assert torch.multinomial is ORIGINAL
