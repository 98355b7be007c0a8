from __future__ import annotations

import dataclasses

import pytest

from labkit.engines.torch_stages import TorchGpt
from labkit.errors import CheckpointError
from labkit.model.checkpoint import load_gpt
from labkit.model.config import FULL, NANO, AudioConfig
from labkit.upstream.cases import SMALL
from labkit.upstream.sizes import upstream_sizes, upstream_step_bytes
from labkit.voices import Voice


def test_the_published_sizes_come_out_in_upstreams_words() -> None:
    sizes = upstream_sizes(FULL)
    assert sizes["gpt"] == {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_hidden_layers": 20,
        "max_position_embeddings": 4096,
        "num_audio_tokens": 626,
        "num_text_tokens": 21178,
        "num_vq": 4,
    }
    assert sizes["decoder"] == {"idim": 384, "odim": 384, "hidden": 512, "n_layer": 12, "bn_dim": 128}
    assert sizes["dvae"]["vq"] == {"dim": 1024, "levels": [5, 5, 5, 5], "G": 2, "R": 2}
    assert sizes["vocos"] == {"input_channels": 100, "dim": 512, "intermediate_dim": 1536, "num_layers": 8}


@pytest.mark.parametrize("config", [NANO, SMALL], ids=["nano", "small"])
def test_the_labs_own_voices_fit_upstream(config) -> None:
    assert upstream_sizes(config)["embed"]["hidden_size"] == config.gpt.hidden


def test_a_kernel_that_upstream_fixes_is_refused_by_name() -> None:
    decoder = dataclasses.replace(SMALL.decoder, kernel=5)
    with pytest.raises(CheckpointError, match="decoder has kernel 5"):
        upstream_sizes(dataclasses.replace(SMALL, decoder=decoder))


def test_a_dvae_of_two_widths_is_refused() -> None:
    dvae = dataclasses.replace(SMALL.dvae, dim=40)
    with pytest.raises(CheckpointError, match="one width"):
        upstream_sizes(dataclasses.replace(SMALL, dvae=dvae))


def test_another_signal_is_refused() -> None:
    with pytest.raises(CheckpointError, match="fixes the signal"):
        upstream_sizes(dataclasses.replace(SMALL, audio=AudioConfig(sample_rate=16_000)))


def test_a_step_reads_what_a_float32_step_of_that_size_reads(tiny_voice: Voice) -> None:
    found = upstream_step_bytes(tiny_voice.config.gpt)
    ours = TorchGpt(load_gpt(tiny_voice.folder), speaker_token=7).memory()
    assert found["kv_row_position_bytes"] == ours["kv_row_position_bytes"]
    assert found["step_weights_bytes"] == pytest.approx(
        ours["step_weights_bytes"], rel=0.02
    )  # without the norms
