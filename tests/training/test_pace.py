"""A tempo and its control token belong together."""

from __future__ import annotations

import pytest

from labkit.training.pace import speed_token, tempo_of


@pytest.mark.parametrize("pace", range(10))
def test_a_tempo_and_its_token_belong_together(pace: int) -> None:
    assert speed_token(tempo_of(pace) * 0.97) == speed_token(tempo_of(pace) * 1.03) == f"[speed_{pace}]"


def test_the_digit_corpus_is_all_of_the_middle_pace() -> None:
    assert speed_token(0.95) == speed_token(1.05) == "[speed_5]"


def test_beyond_the_tokens_the_nearest_one_stands() -> None:
    assert (speed_token(0.1), speed_token(9.0)) == ("[speed_0]", "[speed_9]")
