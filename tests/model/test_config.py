from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.model.config import FULL, NANO, AudioConfig, ConvStackConfig, DvaeConfig, GptConfig, VoiceConfig


def test_defaults_are_the_published_sizes() -> None:
    assert (FULL.gpt.hidden, FULL.gpt.layers, FULL.gpt.head_dim, FULL.gpt.end_code) == (768, 20, 64, 625)
    assert FULL.dvae.vq_dim == 1024 and FULL.dvae.levels == (5, 5, 5, 5)
    assert FULL.gpt.num_code_tokens == 5**4 + 1


def test_one_second_is_46_875_steps() -> None:
    audio = AudioConfig()
    assert audio.samples_per_step == 512
    assert audio.steps_per_second == 46.875


def test_nano_has_the_same_signal_and_codes() -> None:
    assert NANO.audio == FULL.audio
    assert NANO.gpt.num_code_tokens == FULL.gpt.num_code_tokens
    assert NANO.dvae.residual_scale == "levels-1"


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: GptConfig(hidden=100, heads=12), "hidden=100"),
        (lambda: GptConfig(hidden=36, heads=12), "hidden=36"),
        (lambda: DvaeConfig(vq_dim=100), "vq_dim=100"),
        (lambda: replace(FULL, decoder=ConvStackConfig(100, 100, 8, 1, 4)), "decoder.idim=100"),
    ],
)
def test_sizes_that_cannot_fit_are_refused_by_name(make: object, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make()  # type: ignore[operator]


def test_configs_are_values() -> None:
    assert VoiceConfig() == FULL and hash(VoiceConfig()) == hash(FULL)
