"""The GPT as a graph for ONNX Runtime: prefill and decode in one, keys and values written in place.

Built by hand from ONNX Runtime's fused operators, because an exporter decomposes attention and the norms: this graph
reads its weights near the memory's bandwidth and is made in seconds. Embeddings stay outside, in the voice's own
file: a step looks up four rows of them.

Inputs: `embeddings` [B, S, D] right-padded; `last_position` [B] int32, each row's last real position counted from its
first token; `longest` [1] int32, positions of the longest row, the new ones included; `read_at` [B, 1] int64, the
index in S of each row's last real token; `past_key_i` and `past_value_i` [B, heads, capacity, head_dim]. Outputs:
`hidden` [B, D], `logits` [B, 4 * 626], and `present_key_i` and `present_value_i`, which the caller binds to the buffers
of the past.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from onnx import TensorProto

from labkit.export.graph import MICROSOFT, OPSET, GraphWriter
from labkit.export.standard_nodes import Array, as_numpy, linear, rms_norm

if TYPE_CHECKING:
    from torch import Tensor

    from labkit.model.config import GptConfig
    from labkit.model.gpt import Gpt, Layer

MODEL_FILE = "gpt.onnx"
HEAD_NODE = "logits.MatMul"
ROPE_TABLES = "rope_"
"""How the names of the rotary tables begin: a step reads one row of them and not all."""
_HEAD_MULTIPLE = 16  # GroupQueryAttention with rotary positions takes head sizes that are multiples of 16


def export_gpt(gpt: Gpt, folder: Path) -> dict[str, Any]:
    """Write the graph and its weights into `folder`; returns what the manifest records."""
    config = gpt.config
    head_dim = -(-config.head_dim // _HEAD_MULTIPLE) * _HEAD_MULTIPLE
    with GraphWriter(folder) as graph:
        _write_graph(graph, gpt, head_dim)
        graph.save(MODEL_FILE, "gpt")
    return {
        "opset": OPSET,
        "layers": config.layers,
        "heads": config.heads,
        "head_dim": head_dim,
        "head_dim_of_the_voice": config.head_dim,
        "positions": config.positions,
        "codebooks": config.num_codebooks,
        "attention": "GroupQueryAttention",
    }


def _write_graph(graph: GraphWriter, gpt: Gpt, head_dim: int) -> None:
    config = gpt.config
    x = graph.input("embeddings", TensorProto.FLOAT, ["batch", "tokens", config.hidden])
    graph.input("last_position", TensorProto.INT32, ["batch"])
    graph.input("longest", TensorProto.INT32, [1])
    graph.input("read_at", TensorProto.INT64, ["batch", 1])
    graph.output("hidden", TensorProto.FLOAT, ["batch", config.hidden])
    graph.output("logits", TensorProto.FLOAT, ["batch", config.num_codebooks * config.num_code_tokens])
    _write_rope(graph, gpt, head_dim)

    layers = cast("list[Layer]", list(gpt.layers))
    # the first norm has nothing to add, and the fused one without an addition is in no public operator set
    normed = rms_norm(
        graph, x, layers[0].attention_norm.weight, config.norm_eps, prefix="first", out="0.attention_norm"
    )
    delta = ""
    for i, layer in enumerate(layers):
        if i > 0:
            normed, x = _add_and_norm(
                graph, x, delta, layer.attention_norm.weight, f"{i}.attention_norm", config
            )
        attended = _attention(graph, normed, layer, i, head_dim, config)
        normed, x = _add_and_norm(graph, x, attended, layer.mlp_norm.weight, f"{i}.mlp_norm", config)
        delta = _mlp(graph, normed, layer, i)

    # the heads need one position of each row, so everything after the last layer works on [B, D]
    x = graph.node("GatherND", [x, "read_at"], ["last.x"], batch_dims=1)
    delta = graph.node("GatherND", [delta, "read_at"], ["last.delta"], batch_dims=1)
    _add_and_norm(graph, x, delta, gpt.norm.weight, "hidden", config)
    linear(graph, "hidden", gpt.code_head.weight, "logits")


def _write_rope(graph: GraphWriter, gpt: Gpt, head_dim: int) -> None:
    """Rotary tables [positions, head_dim / 2]; the padding of a head turns by no angle."""
    half, extra = gpt.config.head_dim // 2, (head_dim - gpt.config.head_dim) // 2
    cos = as_numpy(gpt.cos)[:, :half]
    sin = as_numpy(gpt.signed_sin)[:, half:]
    graph.tensor(f"{ROPE_TABLES}cos", np.pad(cos, ((0, 0), (0, extra)), constant_values=1.0))
    graph.tensor(f"{ROPE_TABLES}sin", np.pad(sin, ((0, 0), (0, extra))))


def _attention(graph: GraphWriter, x: str, layer: Layer, i: int, head_dim: int, config: GptConfig) -> str:
    past = [graph.input(f"past_{kind}_{i}", *_cache_shape(config, head_dim)) for kind in ("key", "value")]
    present = [
        graph.output(f"present_{kind}_{i}", *_cache_shape(config, head_dim)) for kind in ("key", "value")
    ]
    qkv = linear(graph, x, _pad_heads(layer.qkv.weight, config, head_dim), f"{i}.qkv")
    attended = graph.node(
        "GroupQueryAttention",
        [qkv, "", "", *past, "last_position", "longest", f"{ROPE_TABLES}cos", f"{ROPE_TABLES}sin"],
        [f"{i}.attended", *present],
        domain=MICROSOFT,
        num_heads=config.heads,
        kv_num_heads=config.heads,
        do_rotary=1,
        rotary_interleaved=0,
        scale=config.head_dim**-0.5,
    )
    out = _pad_heads(layer.out.weight.T, config, head_dim).T
    return linear(graph, attended, out, f"{i}.out")


def _mlp(graph: GraphWriter, x: str, layer: Layer, i: int) -> str:
    """down(silu(gate) * up); QuickGelu with alpha 1 is x * sigmoid(x), which is SiLU."""
    fused = linear(graph, x, layer.gate_up.weight, f"{i}.gate_up")
    graph.node("Split", [fused], [f"{i}.gate", f"{i}.up"], axis=-1, num_outputs=2)
    gate = graph.node("QuickGelu", [f"{i}.gate"], [f"{i}.silu"], domain=MICROSOFT, alpha=1.0)
    product = graph.node("Mul", [gate, f"{i}.up"], [f"{i}.product"])
    return linear(graph, product, layer.down.weight, f"{i}.down")


def _add_and_norm(
    graph: GraphWriter, x: str, delta: str, weight: Tensor, name: str, config: GptConfig
) -> tuple[str, str]:
    """(RMSNorm(x + delta), x + delta)."""
    graph.tensor(f"{name}.weight", as_numpy(weight))
    graph.node(
        "SkipSimplifiedLayerNormalization",
        [x, delta, f"{name}.weight"],
        [name, "", "", f"{name}.sum"],
        domain=MICROSOFT,
        epsilon=config.norm_eps,
    )
    return name, f"{name}.sum"


def _cache_shape(config: GptConfig, head_dim: int) -> tuple[int, list[int | str]]:
    return TensorProto.FLOAT, ["batch", config.heads, "capacity", head_dim]


def _pad_heads(weight: Tensor, config: GptConfig, head_dim: int) -> Array:
    """weight [n * heads * size, in] -> [n * heads * head_dim, in]: each half of a head is filled up with zeros.

    By halves, because rotary positions pair element i with element i + size / 2.
    """
    array = as_numpy(weight)
    halves = array.reshape(-1, 2, config.head_dim // 2, array.shape[1])
    extra = (head_dim - config.head_dim) // 2
    return (
        np.pad(halves, ((0, 0), (0, 0), (0, extra), (0, 0))).reshape(-1, array.shape[1]) if extra else array
    )
