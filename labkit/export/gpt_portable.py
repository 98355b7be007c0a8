"""The GPT as a graph of standard operators, for TensorRT, OpenVINO and whatever else reads ONNX.

Prefill and decode in one graph, keys and values as inputs and outputs: what a run returns as present is the next
run's past. Built by hand on the same bench as the fused graph: in seconds, with names that say what a node is; torch's
exporter takes minutes at full size for much the same operators. Embeddings stay outside, in the voice's own file.

Inputs: `embeddings` [B, S, D], left-padded when it is a prompt; `padding` [B] int64, how many padded positions each
row began with, the same in every run of an utterance; `past_key_i` and `past_value_i` [B, heads, P, head_dim], P = 0
for a prompt. Outputs: `hidden` [B, D] and `logits` [B, 4 * 626] of the last position, and `present_key_i` and
`present_value_i` [B, heads, P + S, head_dim].
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from onnx import TensorProto

from labkit.export.gpt_onnx import MODEL_FILE, ROPE_TABLES
from labkit.export.graph import OPSET, GraphWriter
from labkit.export.standard_nodes import as_numpy, linear, rms_norm

if TYPE_CHECKING:
    from labkit.model.gpt import Gpt, Layer

_MASKED = -1e4
"""Added to the score of a forbidden position: far below any other, and far above what half precision cannot hold."""


def export_portable_gpt(gpt: Gpt, folder: Path) -> dict[str, Any]:
    """Write the graph and its weights into `folder`; returns what the manifest records."""
    config = gpt.config
    with GraphWriter(folder) as graph:
        _Builder(graph, gpt).write()
        graph.save(MODEL_FILE, "gpt")
    return {
        "graph": "portable",
        "opset": OPSET,
        "layers": config.layers,
        "heads": config.heads,
        "head_dim": config.head_dim,
        "head_dim_of_the_voice": config.head_dim,
        "positions": config.positions,
        "codebooks": config.num_codebooks,
        "attention": "standard operators",
    }


class _Builder:
    """Writes one graph; small constants that several nodes read are added once."""

    def __init__(self, graph: GraphWriter, gpt: Gpt) -> None:
        self.graph, self.gpt, self.config = graph, gpt, gpt.config
        self.known: set[str] = set()

    def write(self) -> None:
        config, graph = self.config, self.graph
        x = graph.input("embeddings", TensorProto.FLOAT, ["batch", "tokens", config.hidden])
        graph.input("padding", TensorProto.INT64, ["batch"])
        graph.output("hidden", TensorProto.FLOAT, ["batch", config.hidden])
        graph.output("logits", TensorProto.FLOAT, ["batch", config.num_codebooks * config.num_code_tokens])
        self.positions_and_mask()
        for i, layer in enumerate(cast("list[Layer]", list(self.gpt.layers))):
            x = self.layer(x, layer, i)
        # the heads need the last position alone, which left padding puts at the same place in every row
        last = graph.node("Gather", [x, self.constant("last", np.array(-1))], ["last.x"], axis=1)
        rms_norm(graph, last, self.gpt.norm.weight, config.norm_eps, prefix="final_norm", out="hidden")
        linear(graph, "hidden", self.gpt.code_head.weight, "logits")

    def positions_and_mask(self) -> None:
        """`cos` and `sin` [B, 1, S, head_dim] of the new tokens, and the bias [B, 1, S, P + S] of what they see."""
        graph, node = self.graph, self.graph.node
        past = node("Shape", ["past_key_0"], ["past.size"], start=2, end=3)
        tokens = node("Shape", ["embeddings"], ["tokens.size"], start=1, end=2)
        total = node("Add", [past, tokens], ["total.size"])
        zero, one = self.constant("zero", np.array(0)), self.constant("one", np.array(1))
        first = node("Squeeze", [past], ["past.number"])
        end = node("Squeeze", [total], ["total.number"])
        slots = node("Range", [zero, end, one], ["slots"])  # [P + S]
        own = node("Range", [first, end, one], ["own"])  # [S]: the slots of the new tokens
        padding = node("Unsqueeze", ["padding", self.axes(1)], ["padding.column"])  # [B, 1]

        # positions count from each row's first real token; padded slots take the first angle, and nobody sees them
        counted = node("Sub", [own, padding], ["own.counted"])
        positions = node("Max", [counted, zero], ["positions"])  # [B, S]
        for name, table in (("cos", self.gpt.cos), ("sin", self.gpt.signed_sin)):
            graph.tensor(f"{ROPE_TABLES}{name}", as_numpy(table))
            rows = node("Gather", [f"{ROPE_TABLES}{name}", positions], [f"{name}.rows"], axis=0)
            node("Unsqueeze", [rows, self.axes(1)], [name])

        earlier = node(
            "LessOrEqual",
            [slots, node("Unsqueeze", [own, self.axes(1)], ["own.column"])],
            ["earlier"],  # [S, P + S]
        )
        real = node("GreaterOrEqual", [slots, padding], ["real"])  # [B, P + S]
        seen = node("And", [node("Unsqueeze", [real, self.axes(1)], ["real.rows"]), earlier], ["seen"])
        open_, closed = (
            self.constant(name, np.array(value, np.float32))
            for name, value in (("open", 0), ("closed", _MASKED))
        )
        bias = node("Where", [seen, open_, closed], ["bias.rows"])  # [B, S, P + S]
        node("Unsqueeze", [bias, self.axes(1)], ["bias"])

    def layer(self, x: str, layer: Layer, i: int) -> str:
        graph, config = self.graph, self.config
        name = f"{i}.attention_norm"
        normed = rms_norm(graph, x, layer.attention_norm.weight, config.norm_eps, prefix=name, out=name)
        attended = linear(graph, self.attention(normed, layer, i), layer.out.weight, f"{i}.out")
        x = graph.node("Add", [x, attended], [f"{i}.attention_sum"])
        name = f"{i}.mlp_norm"
        normed = rms_norm(graph, x, layer.mlp_norm.weight, config.norm_eps, prefix=name, out=name)
        return graph.node("Add", [x, self.mlp(normed, layer, i)], [f"{i}.mlp_sum"])

    def attention(self, x: str, layer: Layer, i: int) -> str:
        """[B, S, D] -> [B, S, D], before the output projection."""
        node, heads, size = self.graph.node, self.config.heads, self.config.head_dim
        qkv = linear(self.graph, x, layer.qkv.weight, f"{i}.qkv")
        split = self.constant("shape.split", np.array([0, 0, 3 * heads, size]))
        apart = node("Reshape", [qkv, split], [f"{i}.qkv.apart"])
        by_head = node(
            "Transpose", [apart], [f"{i}.qkv.by_head"], perm=[0, 2, 1, 3]
        )  # [B, 3 * heads, S, size]
        sizes = self.constant("sizes.qk_v", np.array([2 * heads, heads]))
        node("Split", [by_head, sizes], [f"{i}.qk", f"{i}.new_value"], axis=1)
        turned = self.rotate(f"{i}.qk")
        node("Split", [turned], [f"{i}.query", f"{i}.new_key"], axis=1, num_outputs=2)
        key, value = (self.append(kind, i) for kind in ("key", "value"))

        # scaled before the product, so that half precision does not overflow in it
        scale = self.constant("scale", np.array(size**-0.5, np.float32))
        query = node("Mul", [f"{i}.query", scale], [f"{i}.scaled_query"])
        across = node("Transpose", [key], [f"{i}.key_across"], perm=[0, 1, 3, 2])
        scores = node("Add", [node("MatMul", [query, across], [f"{i}.scores"]), "bias"], [f"{i}.masked"])
        shares = node("Softmax", [scores], [f"{i}.shares"], axis=-1)
        attended = node("MatMul", [shares, value], [f"{i}.attended"])
        in_order = node("Transpose", [attended], [f"{i}.attended.in_order"], perm=[0, 2, 1, 3])
        joined = self.constant("shape.joined", np.array([0, 0, heads * size]))
        return node("Reshape", [in_order, joined], [f"{i}.attended.joined"])

    def rotate(self, x: str) -> str:
        """x cos + (second half, first half) sin; the sign is in the table."""
        node = self.graph.node
        node("Split", [x], [f"{x}.first", f"{x}.second"], axis=-1, num_outputs=2)
        swapped = node("Concat", [f"{x}.second", f"{x}.first"], [f"{x}.swapped"], axis=-1)
        straight = node("Mul", [x, "cos"], [f"{x}.straight"])
        return node("Add", [straight, node("Mul", [swapped, "sin"], [f"{x}.crossed"])], [f"{x}.turned"])

    def append(self, kind: str, i: int) -> str:
        """The past and the new keys or values, which is also what the graph hands back."""
        heads, size = self.config.heads, self.config.head_dim
        past = self.graph.input(f"past_{kind}_{i}", TensorProto.FLOAT, ["batch", heads, "past", size])
        out = self.graph.output(f"present_{kind}_{i}", TensorProto.FLOAT, ["batch", heads, "total", size])
        return self.graph.node("Concat", [past, f"{i}.new_{kind}"], [out], axis=2)

    def mlp(self, x: str, layer: Layer, i: int) -> str:
        """down(silu(gate) * up)."""
        node = self.graph.node
        fused = linear(self.graph, x, layer.gate_up.weight, f"{i}.gate_up")
        node("Split", [fused], [f"{i}.gate", f"{i}.up"], axis=-1, num_outputs=2)
        sigmoid = node("Sigmoid", [f"{i}.gate"], [f"{i}.sigmoid"])
        silu = node("Mul", [f"{i}.gate", sigmoid], [f"{i}.silu"])
        return linear(
            self.graph, node("Mul", [silu, f"{i}.up"], [f"{i}.product"]), layer.down.weight, f"{i}.down"
        )

    def constant(self, name: str, array: Any) -> str:
        name = f"constant.{name}"
        if name not in self.known:
            self.known.add(name)
            self.graph.tensor(name, array)
        return name

    def axes(self, axis: int) -> str:
        return self.constant(f"axis_{axis}", np.array([axis]))
