"""A voice's sizes in the words of upstream's configuration object, and what a step of that size reads."""

from __future__ import annotations

from typing import Any

from labkit.errors import CheckpointError
from labkit.measure.roofline import float32_step_weights
from labkit.model.config import AudioConfig, ConvStackConfig, GptConfig, VoiceConfig

_KERNEL, _DILATION = 7, 2  # fixed in upstream's decoder stack
_FLOAT_BYTES = 4


def upstream_sizes(config: VoiceConfig) -> dict[str, Any]:
    """Return the sizes for the worker's `load`; `CheckpointError` where upstream fixes a size that
    differs.
    """
    if config.audio != AudioConfig():
        raise CheckpointError(f"upstream fixes the signal at {AudioConfig()}; this voice has {config.audio}.")
    gpt, dvae = config.gpt, config.dvae
    tied = {dvae.dim, dvae.encoder.idim, dvae.decoder.idim, dvae.decoder.odim}
    if len(tied) > 1 or config.decoder.idim != config.decoder.odim:
        raise CheckpointError(
            f"upstream gives the DVAE's mel side, stem and output one width; this voice has {sorted(tied)} there and "
            f"{config.decoder.idim} and {config.decoder.odim} in its decoder."
        )
    embed = {
        "hidden_size": gpt.hidden,
        "num_audio_tokens": gpt.num_code_tokens,
        "num_text_tokens": gpt.num_text_tokens,
        "num_vq": gpt.num_codebooks,
    }
    return {
        "embed": embed,
        "gpt": {
            **embed,
            "intermediate_size": gpt.intermediate,
            "num_attention_heads": gpt.heads,
            "num_hidden_layers": gpt.layers,
            "max_position_embeddings": gpt.positions,
        },
        "decoder": _stack(config.decoder, "decoder"),
        "dvae": {
            "encoder": _stack(dvae.encoder, "dvae.encoder"),
            "decoder": _stack(dvae.decoder, "dvae.decoder"),
            "vq": {"dim": dvae.vq_dim, "levels": list(dvae.levels), "G": dvae.groups, "R": dvae.residuals},
        },
        "vocos": {
            "input_channels": config.audio.n_mels,
            "dim": config.vocoder.dim,
            "intermediate_dim": config.vocoder.intermediate,
            "num_layers": config.vocoder.layers,
        },
    }


def upstream_step_bytes(gpt: GptConfig) -> dict[str, int]:
    """What a decode step of upstream's float32 network reads, under the names of `GptStage.memory`."""
    weights = float32_step_weights(
        layers=gpt.layers,
        hidden=gpt.hidden,
        intermediate=gpt.intermediate,
        head_rows=gpt.num_codebooks * gpt.num_code_tokens,
    )
    position = 2 * gpt.layers * gpt.hidden * _FLOAT_BYTES  # a key and a value in every layer
    return {"step_weights_bytes": weights, "kv_row_position_bytes": position}


def _stack(stack: ConvStackConfig, name: str) -> dict[str, int]:
    if (stack.kernel, stack.dilation) != (_KERNEL, _DILATION):
        raise CheckpointError(
            f"{name} has kernel {stack.kernel} and dilation {stack.dilation}; upstream fixes {_KERNEL} and {_DILATION}."
        )
    return {
        "idim": stack.idim,
        "odim": stack.odim,
        "hidden": stack.hidden,
        "n_layer": stack.layers,
        "bn_dim": stack.bottleneck,
    }
