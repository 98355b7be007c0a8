"""A complete small voice for every test that needs files of one."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import settings

from labkit.model.config import ConvStackConfig, DvaeConfig, GptConfig, VocoderConfig, VoiceConfig
from labkit.voices import Voice, make_random_voice, open_voice

# a busy machine is slow, not wrong: what is too slow is found by benchmarks
settings.register_profile("labkit", deadline=None)
settings.load_profile("labkit")

TINY = VoiceConfig(
    gpt=GptConfig(hidden=48, intermediate=88, heads=4, layers=2, positions=256, num_text_tokens=150),
    decoder=ConvStackConfig(24, 24, 32, 2, 16),
    dvae=DvaeConfig(
        dim=32,
        encoder=ConvStackConfig(32, 64, 32, 2, 16),
        decoder=ConvStackConfig(32, 32, 32, 2, 16),
        vq_dim=64,
    ),
    vocoder=VocoderConfig(dim=32, intermediate=64, layers=2),
)
"""Random weights at a size that takes milliseconds; its head size, 12, is none that fused attention takes as it is."""


@pytest.fixture(scope="session")
def tiny_voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    return open_voice(make_random_voice(tmp_path_factory.mktemp("tiny-voice"), TINY, seed=3))


@pytest.fixture(scope="session")
def blocky_voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    """As `tiny_voice`, with sizes that blocks of 32 divide and of 64 do not."""
    config = dataclasses.replace(
        TINY,
        gpt=dataclasses.replace(TINY.gpt, hidden=64, intermediate=96),
        decoder=dataclasses.replace(TINY.decoder, idim=32, odim=32),
        dvae=dataclasses.replace(TINY.dvae, vq_dim=64),
    )
    return open_voice(make_random_voice(tmp_path_factory.mktemp("blocky-voice"), config, seed=4))
