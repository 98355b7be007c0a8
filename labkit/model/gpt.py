"""The GPT stage: a Llama-style decoder that reads text and writes four audio codes a step.

One network, three ways through it, all over the same `Gpt.run`:

* `forward`: whole sequences without a cache, for training;
* `prefill` and `step`: inference with `KvCache`, preallocated and written in place;
* `FunctionalCache`: past in, present out, for exporters.

Knows no files and no sampling. Batches are left-padded and positions count from each row's first real token.
Architecture: RMSNorm, rotary positions (half-split rotation), SwiGLU, no biases; the embeddings of a step's four
codes are summed, and four heads read the last hidden state.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labkit.model.config import GptConfig
from labkit.model.kv_cache import MASKED, KeyValues, KvCache

Trace = list[tuple[Tensor, Tensor]]
"""Per layer: (output [B, T, hidden], attention map [B, heads, T, T]); for training aids."""


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
    """Rotary positions: x cos + (-x2, x1) sin, the sign folded into the table. x: [..., T, head_dim]."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * signed_sin


class Layer(nn.Module):
    """Attention and SwiGLU, each with its RMSNorm and residual. Projections that share an input are fused."""

    def __init__(self, config: GptConfig):
        super().__init__()
        hidden = config.hidden
        self.heads, self.head_dim = config.heads, config.head_dim
        self.attention_norm = RMSNorm(hidden, config.norm_eps)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.mlp_norm = RMSNorm(hidden, config.norm_eps)
        self.gate_up = nn.Linear(hidden, 2 * config.intermediate, bias=False)
        self.down = nn.Linear(config.intermediate, hidden, bias=False)

    def project(self, x: Tensor, cos: Tensor, signed_sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, T, hidden] -> rotated queries, rotated keys, values: [B, heads, T, head_dim] each."""
        qkv = self.qkv(self.attention_norm(x)).unflatten(2, (3, self.heads, self.head_dim))
        qkv = qkv.permute(2, 0, 3, 1, 4)  # [3, B, heads, T, head_dim]
        q, k = rotate(qkv[:2], cos, signed_sin).unbind(0)
        return q, k, qkv[2]

    def finish(self, x: Tensor, attended: Tensor, dropout: float = 0.0) -> Tensor:
        """Add the attention's result [B, heads, T, head_dim] and the MLP to the residual stream x."""
        x = x + F.dropout(self.out(attended.transpose(1, 2).flatten(2)), dropout, self.training)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + F.dropout(self.down(F.silu(gate) * up), dropout, self.training)


def explicit_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """(result, attention map). Faster than the fused kernel's backward on a CPU, and it shows the map."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
    attention = scores.softmax(-1)
    return attention @ v, attention


class Gpt(nn.Module):
    """The network and its embeddings and heads; see the module for the three ways through it."""

    code_offsets: Tensor
    cos: Tensor
    signed_sin: Tensor

    def __init__(self, config: GptConfig):
        super().__init__()
        self.config = config
        hidden, codes = config.hidden, config.num_codebooks * config.num_code_tokens
        self.text_embedding = nn.Embedding(config.num_text_tokens, hidden)
        self.code_embedding = nn.Embedding(codes, hidden)  # the codebooks' tables, one after another
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(hidden, config.norm_eps)
        self.code_head = nn.Linear(hidden, codes, bias=False)  # the codebooks' heads, one after another
        self.text_head = nn.Linear(hidden, config.num_text_tokens, bias=False)
        offsets = torch.arange(config.num_codebooks) * config.num_code_tokens
        self.register_buffer("code_offsets", offsets, persistent=False)
        cos, signed_sin = _rope_tables(config)
        self.register_buffer("cos", cos, persistent=False)  # [positions, head_dim]
        self.register_buffer("signed_sin", signed_sin, persistent=False)

    def init_weights(self) -> None:
        """Start training: N(0, 0.02), residual projections shrunk by sqrt(2 * layers)."""
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                shrink = (
                    (2 * self.config.layers) ** 0.5 if name.endswith(("out.weight", "down.weight")) else 1.0
                )
                nn.init.normal_(weight, std=0.02 / shrink)

    def lay_out_for_decoding(self) -> Gpt:
        """Keep the matrices that every step reads column by column in memory; the values are not copied over.

        A float32 product with one to three rows then streams its weights 1.3 to 1.7 times faster (MKL, one thread),
        and larger ones run as before. In bfloat16 the usual layout is the faster one.
        """
        for module in (*self.layers.modules(), self.code_head):
            if isinstance(module, nn.Linear):
                columns = torch.empty(module.in_features, module.out_features, dtype=module.weight.dtype)
                module.weight = nn.Parameter(columns.t(), requires_grad=False)
        return self

    def embed_text(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, hidden]."""
        return self.text_embedding(ids)

    def embed_codes(self, codes: Tensor) -> Tensor:
        """codes [..., 4] -> the sum of their embeddings [..., hidden]."""
        return self.code_embedding(codes + self.code_offsets).sum(-2)

    def code_logits(self, hidden: Tensor) -> Tensor:
        """hidden [..., hidden] -> [..., 4, num_code_tokens]."""
        return self.code_head(hidden).unflatten(-1, (self.config.num_codebooks, -1))

    def text_logits(self, hidden: Tensor) -> Tensor:
        """hidden [..., hidden] -> [..., num_text_tokens]."""
        return self.text_head(hidden)

    def forward(
        self,
        embeddings: Tensor,
        mask: Tensor | None = None,
        trace: Trace | None = None,
        dropout: float = 0.0,
    ) -> Tensor:
        """Whole sequences, causally, without a cache: [B, T, hidden] -> hidden states after the final norm.

        mask [B, T] is True at real tokens (padding left or right; positions count from the first real token).
        A `trace` list receives each layer's output and attention map.
        """
        batch, length, _ = embeddings.shape
        if mask is None:
            mask = torch.ones(batch, length, dtype=torch.bool, device=embeddings.device)
        bias = causal_bias(mask).to(embeddings.dtype)
        cos, signed_sin = self.rope_at(positions_of(mask))
        x = embeddings
        for layer in cast("list[Layer]", self.layers):
            q, k, v = layer.project(x, cos, signed_sin)
            attended, attention = explicit_attention(q, k, v, bias)
            x = layer.finish(x, attended, dropout)
            if trace is not None:
                trace.append((x, attention))
        return self.norm(x)

    def run(self, x: Tensor, cos: Tensor, signed_sin: Tensor, bias: Tensor | None, kv: KeyValues) -> Tensor:
        """All layers over a cache: x [B, T, hidden], tables [B, 1, T, head_dim], bias like [B, 1, T, all]."""
        for i, layer in enumerate(cast("list[Layer]", self.layers)):
            q, k, v = layer.project(x, cos, signed_sin)
            k, v = kv.update(i, k, v)
            x = layer.finish(x, F.scaled_dot_product_attention(q, k, v, bias))
        return self.norm(x)

    def rope_at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """positions [B, T] -> (cos, signed sin), [B, 1, T, head_dim] each."""
        return self.cos[positions].unsqueeze(1), self.signed_sin[positions].unsqueeze(1)

    def new_cache(self, batch: int, capacity: int) -> KvCache:
        weight = self.norm.weight
        return KvCache(self.config, batch, capacity, weight.dtype, weight.device)

    def prefill(self, embeddings: Tensor, mask: Tensor, cache: KvCache) -> Tensor:
        """Read left-padded prompts into an empty cache: [B, S, hidden] -> last hidden states [B, hidden]."""
        cache.set_padding(mask)
        cache.length = 0
        cos, signed_sin = self.rope_at(positions_of(mask))
        bias = causal_bias(mask).to(embeddings.dtype)
        hidden = self.run(embeddings, cos, signed_sin, bias, cache)
        cache.length = mask.shape[1]
        return hidden[:, -1]

    def step(self, codes: Tensor, cache: KvCache) -> Tensor:
        """Feed the codes just drawn, [B, 4] -> hidden states [B, hidden]."""
        return self.step_embedding(self.embed_codes(codes), cache)

    def step_text(self, ids: Tensor, cache: KvCache) -> Tensor:
        """Feed one text token per row, [B] -> hidden states [B, hidden]."""
        return self.step_embedding(self.embed_text(ids), cache)

    def step_embedding(self, embedding: Tensor, cache: KvCache) -> Tensor:
        """Feed one embedding per row, [B, hidden] -> hidden states [B, hidden]."""
        cos, signed_sin = self.rope_at((cache.length - cache.padding)[:, None])
        end = cache.length + 1
        bias = None if cache.bias is None else cache.bias[..., :end]
        hidden = self.run(embedding[:, None], cos, signed_sin, bias, cache)
        cache.length = end
        return hidden[:, 0]


def positions_of(mask: Tensor) -> Tensor:
    """mask [B, T] -> position of each token counted from its row's first real one; 0 in the left padding."""
    return (mask.long().cumsum(1) - 1).clamp(min=0)


def causal_bias(mask: Tensor) -> Tensor:
    """mask [B, T] -> additive bias [B, 1, T, T]: a token sees the real tokens up to itself."""
    length = mask.shape[1]
    order = torch.arange(length, device=mask.device)
    seen = (order[None, :] <= order[:, None]) & mask[:, None, :]  # [B, T, T]
    return torch.where(seen, 0.0, MASKED)[:, None]


def _rope_tables(config: GptConfig) -> tuple[Tensor, Tensor]:
    frequency = 1.0 / config.rope_theta ** (torch.arange(0, config.head_dim, 2).float() / config.head_dim)
    angle = torch.outer(torch.arange(config.positions).float(), frequency)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)
