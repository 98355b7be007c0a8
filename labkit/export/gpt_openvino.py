"""The GPT as OpenVINO's own representation: prefill and decode in one model, keys and values its state.

Built by hand in OpenVINO's operators, because its plugin for CPUs keeps a cache in place only where it finds the
pattern that it knows: a variable, its rows gathered by number, the new positions joined to them, the attention
operator over the result. Weights are stored as they are multiplied: float32, bfloat16, or codes in blocks with their
scales, which the plugin reads as such. Embeddings stay outside, in the voice's own file.

Inputs: `embeddings` [B, S, D], left-padded when it is a prompt; `padding` [B] int64, how many padded positions each
row began with; `past` [1] int64, positions that the state holds, 0 for a prompt; `rows` [B] int32, which row of the
state each row goes on with: 0, 1, 2, … Outputs: `hidden` [B, D] and `logits` [B, 4 * 626] of the last position.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from labkit.export.standard_nodes import Array, as_numpy

if TYPE_CHECKING:
    from openvino import Model

    from labkit.model.gpt import Gpt, Layer
    from labkit.quantize.blocks import Blocks

MODEL_FILE = "gpt.xml"
DATA_FILE = "gpt.bin"
Rounding = Callable[[str, Array], "Blocks"]
"""A product's name, as in `3.down`, and its weights [in, out] -> what to store of them."""
_MASKED = -1e4  # added to the score of a forbidden position, as in the portable graph


def export_openvino_gpt(
    gpt: Gpt, folder: Path, *, bfloat16: bool = False, rounding: Rounding | None = None
) -> dict[str, Any]:
    """Write model and weights into `folder`; returns what the manifest records.

    bfloat16: how matrices are stored that are not rounded. rounding: for the matrices of the layers, not the heads.
    """
    import openvino

    config = gpt.config
    openvino.save_model(
        _Builder(gpt, bfloat16, rounding).model(), folder / MODEL_FILE, compress_to_fp16=False
    )
    tables = 2 * as_numpy(gpt.cos).nbytes  # a step reads a row of each
    return {
        "graph": "openvino",
        "layers": config.layers,
        "heads": config.heads,
        "head_dim": config.head_dim,
        "positions": config.positions,
        "codebooks": config.num_codebooks,
        "attention": "ScaledDotProductAttention",
        "step_weights_bytes": (folder / DATA_FILE).stat().st_size - tables,
    }


class _Builder:
    """Builds one model; nodes are OpenVINO's, arrays are constants on the way."""

    def __init__(self, gpt: Gpt, bfloat16: bool, rounding: Rounding | None) -> None:
        from openvino import opset15

        self.op, self.gpt, self.config = opset15, gpt, gpt.config
        self.bfloat16, self.rounding = bfloat16, rounding
        self.sinks: list[Any] = []

    def model(self) -> Model:
        from openvino import Model

        op, config = self.op, self.config
        embeddings = op.parameter([-1, -1, config.hidden], np.float32, name="embeddings")
        padding = op.parameter([-1], np.int64, name="padding")
        past = op.parameter([1], np.int64, name="past")
        self.rows = op.parameter([-1], np.int32, name="rows")
        inputs = [embeddings, padding, past, self.rows]
        self.positions_and_mask(embeddings, padding, past)
        x = embeddings
        for i, layer in enumerate(cast("list[Layer]", list(self.gpt.layers))):
            x = self.layer(x, layer, i)
        # the heads need the last position alone, which left padding puts at the same place in every row
        last = op.gather(x, self.whole(-1), self.whole(1))
        hidden = self.norm(last, self.gpt.norm.weight)
        logits = op.matmul(hidden, op.constant(as_numpy(self.gpt.code_head.weight)), False, True)
        results = [op.result(hidden), op.result(logits)]
        names = [node.get_friendly_name() for node in inputs] + ["hidden", "logits"]
        for node, name in zip([*inputs, *results], names, strict=True):
            node.output(0).get_tensor().set_names({name})
        return Model(results, self.sinks, inputs, "gpt")

    def positions_and_mask(self, embeddings: Any, padding: Any, past: Any) -> None:
        """`cos` and `sin` [B, 1, S, head_dim] of the new tokens, and the bias [B, 1, S, P + S] of what they see."""
        op, whole = self.op, self.whole
        shape = op.shape_of(embeddings, output_type="i64")
        self.batch = op.gather(shape, whole([0]), whole(0))
        first = op.squeeze(past, whole([0]))
        end = op.add(first, op.gather(shape, whole(1), whole(0)))
        slots = op.range(whole(0), end, whole(1), output_type="i64")  # [P + S]
        own = op.range(first, end, whole(1), output_type="i64")  # [S]: the slots of the new tokens
        column = op.unsqueeze(padding, whole([1]))  # [B, 1]

        # positions count from each row's first real token; padded slots take the first angle, and nobody sees them
        positions = op.maximum(op.subtract(own, column), whole(0))  # [B, S]
        self.cos, self.sin = (
            op.unsqueeze(op.gather(op.constant(as_numpy(table)), positions, whole(0)), whole([1]))
            for table in (self.gpt.cos, self.gpt.signed_sin)
        )
        earlier = op.less_equal(slots, op.unsqueeze(own, whole([1])))  # [S, P + S]
        real = op.greater_equal(slots, column)  # [B, P + S]
        seen = op.logical_and(op.unsqueeze(real, whole([1])), earlier)
        self.bias = op.unsqueeze(op.select(seen, self.number(0), self.number(_MASKED)), whole([1]))

    def layer(self, x: Any, layer: Layer, i: int) -> Any:
        op = self.op
        normed = self.norm(x, layer.attention_norm.weight)
        x = op.add(x, self.linear(self.attention(normed, layer, i), as_numpy(layer.out.weight), f"{i}.out"))
        normed = self.norm(x, layer.mlp_norm.weight)
        fused = self.linear(normed, as_numpy(layer.gate_up.weight), f"{i}.gate_up")
        gate, up = op.split(fused, self.whole(-1), 2).outputs()
        product = op.multiply(op.swish(gate), up)
        return op.add(x, self.linear(product, as_numpy(layer.down.weight), f"{i}.down"))

    def attention(self, x: Any, layer: Layer, i: int) -> Any:
        """[B, S, D] -> [B, S, D], before the output projection."""
        op, whole, heads, size = self.op, self.whole, self.config.heads, self.config.head_dim
        qkv = self.linear(x, as_numpy(layer.qkv.weight), f"{i}.qkv")
        apart = op.reshape(qkv, whole([0, 0, 3 * heads, size]), True)
        by_head = op.transpose(apart, whole([0, 2, 1, 3]))  # [B, 3 * heads, S, size]
        turned, value = op.variadic_split(by_head, whole(1), whole([2 * heads, heads])).outputs()
        query, key = op.split(self.rotate(turned), whole(1), 2).outputs()
        keys, values = (self.append(kind, new, i) for kind, new in (("key", key), ("value", value)))
        attended = op.scaled_dot_product_attention(
            query, keys, values, self.bias, self.number(size**-0.5), False
        )
        in_order = op.transpose(attended, whole([0, 2, 1, 3]))
        return op.reshape(in_order, whole([0, 0, heads * size]), True)

    def rotate(self, x: Any) -> Any:
        """x cos + (second half, first half) sin; the sign is in the table."""
        op = self.op
        first, second = op.split(x, self.whole(-1), 2).outputs()
        return op.add(op.multiply(x, self.cos), op.multiply(op.concat([second, first], -1), self.sin))

    def append(self, kind: str, new: Any, i: int) -> Any:
        """The positions in the state and the new ones, which become the state. An empty state has none."""
        from openvino import PartialShape, Type
        from openvino.op.util import Variable, VariableInfo

        op, heads, size = self.op, self.config.heads, self.config.head_dim
        info = VariableInfo()
        info.variable_id = f"{kind}_{i}"
        info.data_type, info.data_shape = Type.f32, PartialShape([-1, heads, -1, size])
        variable = Variable(info)
        shape = op.concat([self.batch, self.whole([heads, 0, size])], 0)
        held = op.read_value(op.broadcast(self.number(0), shape), variable)
        joined = op.concat([op.gather(held, self.rows, self.whole(0)), new], 2)
        self.sinks.append(op.assign(joined, variable))
        return joined

    def norm(self, x: Any, weight: Any) -> Any:
        """x / sqrt(mean(x ** 2) + eps) * weight, in the form that the plugin has one kernel for."""
        op = self.op
        mean = op.reduce_mean(op.power(x, self.number(2)), self.whole([-1]), True)
        inverse = op.divide(self.number(1), op.sqrt(op.add(mean, self.number(self.config.norm_eps))))
        return op.multiply(op.constant(as_numpy(weight)), op.multiply(x, inverse))

    def linear(self, x: Any, weight: Array, name: str) -> Any:
        """x [..., in] times weight [out, in] transposed."""
        op = self.op
        if self.rounding is not None:
            stored = self.restored(self.rounding(name, np.ascontiguousarray(weight.T)))
        elif self.bfloat16:
            from openvino import Type

            stored = op.convert(op.constant(weight, dtype=Type.bf16), "f32")
        else:
            stored = op.constant(weight)
        return op.matmul(x, stored, False, True)

    def restored(self, blocks: Blocks) -> Any:
        """[out, in] of codes, zero points and scales: the plugin multiplies by the codes where it finds this form."""
        op, bits = self.op, blocks.bits
        middle = 2 ** (bits - 1)
        signed = blocks.zeros is None
        codes = (blocks.codes.astype(np.int16) - middle).astype(np.int8) if signed else blocks.codes
        values = op.convert(_constant(codes, bits, signed), "f32")
        if blocks.zeros is not None:
            zeros = _constant(blocks.zeros[..., None], bits, signed=False)
            values = op.subtract(values, op.convert(zeros, "f32"))
        values = op.multiply(values, op.constant(blocks.scales[..., None]))
        return op.reshape(values, self.whole([len(codes), -1]), False)

    def whole(self, value: Any) -> Any:
        return self.op.constant(np.array(value, np.int64))

    def number(self, value: float) -> Any:
        return self.op.constant(np.float32(value))


def _constant(codes: NDArray[Any], bits: int, signed: bool) -> Any:
    """A constant of 8-bit integers, or of 4-bit ones, two to a byte with the earlier one in its low half."""
    from openvino import Shape, Tensor, Type, opset15

    if bits == 8:
        return opset15.constant(codes)
    flat = codes.reshape(-1).view(np.uint8) & np.uint8(15)
    flat = np.pad(flat, (0, flat.size % 2))
    packed = flat[0::2] | (flat[1::2] << np.uint8(4))
    view = Tensor(packed, Shape(list(codes.shape)), Type.i4 if signed else Type.u4)
    return opset15.constant(view, shared_memory=False)  # the array goes when this function is left
