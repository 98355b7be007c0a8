"""Stages whose networks are compiled by TorchInductor. It knows what is traced, and counts what was compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from numpy.typing import NDArray

from labkit.engines.base import BoolArray, FloatArray, IntArray, StepOutput
from labkit.engines.torch_stages import TorchGpt, TorchNetwork, host, tensor_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from labkit.model.gpt import Gpt, Layer

    Layers = tuple[Tensor, ...]

_FIRST_CAPACITY, _FIRST_PROMPT = 37, 5
"""Of the step that is compiled; any other length runs the same graph.

Equal sizes are one symbol to the tracer, so these must be no size of the network's.
"""
_LEAST_PAST = 2  # the tracer takes 0 and 1 for constants and would compile a graph for each


class Compiled:
    """A compiled function, with the seconds that compiling took and the graphs made after the first call."""

    def __init__(self, function: Callable[..., Any], mode: str) -> None:
        self.compile_s = 0.0
        self.recompiles = 0
        self._called = False
        self._run = torch.compile(function, dynamic=True, fullgraph=True, mode=mode)

    def __call__(self, *args: Any) -> Any:
        before, started = _graphs_made(), time.perf_counter()
        result = self._run(*args)
        made = _graphs_made() - before
        if made:
            self.compile_s += time.perf_counter() - started
            self.recompiles += made if self._called else 0
        self._called = True
        return result

    def figures(self) -> dict[str, float]:
        """What `CompilingStage` asks for."""
        return {"compile_s": self.compile_s, "recompiles": self.recompiles}


class _Past:
    """The cache as the compiled step sees it: read, never written.

    The step hands out its new keys and values instead. TorchInductor copies a written cache whole, all layers of it for
    each layer, when its length is a symbol: that took 2.5 times as long as the eager step.
    """

    def __init__(self, keys: Layers, values: Layers, bias: Tensor, length: int) -> None:
        self.keys, self.values = keys, values  # of each layer [B, heads, capacity, head_dim]
        self.bias, self.length = bias[:, :, 0, :length], length  # bias: [B, 1, length]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """One token over the past and itself. q, k, v and result: [B, heads, 1, head_dim].

        Softmax by its definition, in float32: sums of products, which are fused into passes over the past as it lies.
        The library's kernel, made for many queries, takes 500 us for one over 300 positions of the full size.
        """
        past_k, past_v = (each[layer][:, :, : self.length] for each in (self.keys, self.values))
        scaled = _stored(q.float() * q.shape[-1] ** -0.5)
        scores = (scaled * past_k).sum(-1) + self.bias  # [B, heads, length]
        own = (scaled * k).sum(-1)  # [B, heads, 1]
        top = torch.maximum(scores.amax(-1, keepdim=True), own)
        shares, own = (scores - top).exp(), (own - top).exp()
        read = (shares[..., None] * past_v).sum(-2) + own * v[:, :, 0]
        return (read / (shares.sum(-1, keepdim=True) + own)).to(q.dtype)[:, :, None]


def _stored(x: Tensor) -> Tensor:
    """x itself, which the compiler must put in memory here: it would rather work it out again wherever it is read."""
    x = x.contiguous()
    return x.as_strided(x.shape, x.stride())


class CompiledGpt(TorchGpt):
    """`GptStage` whose decode step is one graph. Prompts are read by the eager modules."""

    def __init__(self, network: Gpt, speaker_token: int, mode: str) -> None:
        super().__init__(network, speaker_token)

        def step(
            x: Tensor, cos: Tensor, sin: Tensor, bias: Tensor, keys: Layers, values: Layers, length: int
        ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            past = _Past(keys, values, bias, length)
            new_keys, new_values = [], []
            for i, layer in enumerate(cast("list[Layer]", network.layers)):
                q, k, v = layer.project(x, cos, sin)
                x = layer.finish(x, past.attend(i, q, k, v))
                new_keys.append(k[:, :, 0])
                new_values.append(v[:, :, 0])
            hidden = network.norm(x)[:, 0]
            return network.code_logits(hidden), hidden, torch.stack(new_keys), torch.stack(new_values)

        self._compiled = Compiled(step, mode)
        self._bias: Tensor | None = None  # [B, 1, 1, slots of the cache], made by each prefill
        self._compile_one_row()

    def reset(self, batch: int, capacity: int) -> None:
        with (
            torch.inference_mode()
        ):  # or each layer's part is a view with a base, which every step would check
            super().reset(batch, capacity)

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        output = super().prefill(ids, mask, speaker)
        cache = self.kv()
        bias = cache.bias
        self._bias = cache.keys.new_zeros(len(ids), 1, 1, cache.capacity) if bias is None else bias
        return output

    def advance(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        with torch.inference_mode(), self.fast_products():
            return self._run(self.network.embed_codes(codes))

    def step_text(self, ids: IntArray) -> StepOutput:
        with torch.inference_mode(), self.fast_products():
            logits, hidden = self._run(self.network.embed_text(self.put(ids)))
            return StepOutput(host(logits), host(hidden))

    def figures(self) -> dict[str, float]:
        """What compiling cost; see `Compiled.figures`."""
        return self._compiled.figures()

    def close(self) -> None:
        del self._compiled
        self._bias = None
        super().close()

    def _run(self, embedding: Tensor) -> tuple[Tensor, Tensor]:
        """embedding: [B, D] of the next position -> logits and hidden states."""
        cache = self.kv()
        if cache.length >= cache.capacity:
            raise ValueError(
                f"position {cache.length + 1} exceeds the capacity {cache.capacity} given to reset"
            )
        if cache.length < _LEAST_PAST:
            hidden = self.network.step_embedding(embedding, cache)
            return self.network.code_logits(hidden), hidden
        cos, sin = self.network.rope_at((cache.length - cache.padding)[:, None])
        logits, hidden, keys, values = self._compiled(
            embedding[:, None], cos, sin, self._bias, cache.keys.unbind(), cache.values.unbind(), cache.length
        )
        cache.keys[..., cache.length, :] = keys
        cache.values[..., cache.length, :] = values
        cache.length += 1
        return logits, hidden

    def _compile_one_row(self) -> None:
        """Take one step, so that compiling is part of loading and not of the first utterance."""
        ids = torch.zeros(1, _FIRST_PROMPT, dtype=torch.long).numpy()
        self.reset(1, _FIRST_CAPACITY)
        self.prefill(ids, ids == 0, None)
        self.step(torch.zeros(1, self.network.config.num_codebooks, dtype=torch.long).numpy())


class CompiledNetwork(TorchNetwork):
    """`DecoderStage` or `VocoderStage` compiled for any length. `example`: an input [1, …] to compile on."""

    def __init__(self, network: nn.Module, example: NDArray[Any], mode: str) -> None:
        super().__init__(network)
        self._compiled = Compiled(network, mode)
        self(example)

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        with torch.inference_mode():
            return host(self._compiled(tensor_of(features).to(self.device)))

    def figures(self) -> dict[str, float]:
        """What compiling cost; see `Compiled.figures`."""
        return self._compiled.figures()

    def close(self) -> None:
        del self._compiled
        super().close()


def _graphs_made() -> int:
    """Graphs that this process has handed to the compiler."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])
