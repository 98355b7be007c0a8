"""Which tensor of which file is which part of which module: the one table that loading and saving share.

A `Piece` is one stored tensor and the parameter (or the rows of a fused parameter) that it fills. Weight-normed
linears are stored as a length per row and a direction, under the names torch's parametrization gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from labkit.model import layout
from labkit.model.config import GptConfig

WEIGHT_NORM = ".parametrizations.weight.original"
"""`head{WEIGHT_NORM}0` is the length g [rows, 1], `head{WEIGHT_NORM}1` the direction v [rows, columns]."""


@dataclass(frozen=True)
class Piece:
    """A stored tensor and where it goes: rows [first, first + shape[0]) of `parameter`."""

    file: str
    key: str
    parameter: str
    shape: tuple[int, ...]
    first: int = 0
    weight_norm: bool = False

    def stored(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the file holds for this piece: name -> shape."""
        if not self.weight_norm:
            return {self.key: self.shape}
        return {self.key + WEIGHT_NORM + "0": (self.shape[0], 1), self.key + WEIGHT_NORM + "1": self.shape}


# files may hold these beside the pieces: unused by the network
IGNORED = {layout.GPT_WEIGHTS: re.compile(r"embed_tokens\.weight")}

# constants that ChatTTS stores with the weights: window and mel filters
DVAE_CONSTANTS: dict[str, tuple[str, ...]] = {
    "window": ("preprocessor_mel.mel_spec.spectrogram.window",),
    "filters": ("preprocessor_mel.mel_spec.mel_scale.fb",),
}
VOCODER_CONSTANTS: dict[str, tuple[str, ...]] = {
    "window": ("feature_extractor.mel_spec.spectrogram.window", "head.istft.window"),
    "filters": ("feature_extractor.mel_spec.mel_scale.fb",),
}

# our parameter name -> the stored name, first match wins
_DECODER_NAMES = (
    (r"\.blocks\.(\d+)\.scale$", r".decoder_block.\1.weight"),
    (r"\.blocks\.", ".decoder_block."),
    (r"^vq_layer\.project_(in|out)\.(\d+)\.", r"vq_layer.quantizer.rvqs.\2.project_\1."),
)
_VOCODER_NAMES = (
    (r"^blocks\.(\d+)\.scale$", r"backbone.convnext.\1.gamma"),
    (r"^blocks\.", "backbone.convnext."),
    (r"^(embed|norm)\.", r"backbone.\1."),
    (r"^final_norm\.", "backbone.final_layer_norm."),
    (r"^out\.", "head.out."),
)


def decoder_pieces(shapes: Mapping[str, tuple[int, ...]], file: str) -> list[Piece]:
    """Pieces of the Decoder or the DVAE, from the shapes of the module's state."""
    return _renamed(shapes, file, _DECODER_NAMES)


def vocoder_pieces(shapes: Mapping[str, tuple[int, ...]]) -> list[Piece]:
    return _renamed(shapes, layout.VOCODER_WEIGHTS, _VOCODER_NAMES)


def gpt_pieces(config: GptConfig) -> list[Piece]:
    """Pieces of the GPT: projections that share an input are fused, codebooks are stacked."""
    return [*_layer_pieces(config), *_embedding_pieces(config)]


def _layer_pieces(config: GptConfig) -> Iterable[Piece]:
    hidden, inner = config.hidden, config.intermediate
    # stored name, our parameter, rows, columns, first row
    linears = (
        ("self_attn.q_proj", "qkv", hidden, hidden, 0),
        ("self_attn.k_proj", "qkv", hidden, hidden, hidden),
        ("self_attn.v_proj", "qkv", hidden, hidden, 2 * hidden),
        ("self_attn.o_proj", "out", hidden, hidden, 0),
        ("mlp.gate_proj", "gate_up", inner, hidden, 0),
        ("mlp.up_proj", "gate_up", inner, hidden, inner),
        ("mlp.down_proj", "down", hidden, inner, 0),
    )
    norms = (("input_layernorm", "attention_norm"), ("post_attention_layernorm", "mlp_norm"))
    for i in range(config.layers):
        for key, parameter, rows, columns, first in linears:
            name, target = f"layers.{i}.{key}.weight", f"layers.{i}.{parameter}.weight"
            yield Piece(layout.GPT_WEIGHTS, name, target, (rows, columns), first)
        for key, parameter in norms:
            name, target = f"layers.{i}.{key}.weight", f"layers.{i}.{parameter}.weight"
            yield Piece(layout.GPT_WEIGHTS, name, target, (hidden,))
    yield Piece(layout.GPT_WEIGHTS, "norm.weight", "norm.weight", (hidden,))


def _embedding_pieces(config: GptConfig) -> Iterable[Piece]:
    file, text, code = layout.EMBED_WEIGHTS, config.num_text_tokens, config.num_code_tokens
    yield Piece(file, "emb_text.weight", "text_embedding.weight", (text, config.hidden))
    yield Piece(file, "head_text", "text_head.weight", (text, config.hidden), weight_norm=True)
    for i in range(config.num_codebooks):
        shape, first = (code, config.hidden), i * code
        yield Piece(file, f"emb_code.{i}.weight", "code_embedding.weight", shape, first)
        yield Piece(file, f"head_code.{i}", "code_head.weight", shape, first, weight_norm=True)


def _renamed(
    shapes: Mapping[str, tuple[int, ...]], file: str, names: tuple[tuple[str, str], ...]
) -> list[Piece]:
    pieces = []
    for parameter, shape in shapes.items():
        key = parameter
        for pattern, replacement in names:
            key, hits = re.subn(pattern, replacement, parameter)
            if hits:
                break
        pieces.append(Piece(file, key, parameter, tuple(shape)))
    return pieces
