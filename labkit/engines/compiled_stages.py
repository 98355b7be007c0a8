"""Stages whose networks are compiled by TorchInductor. It knows what is traced, and counts what was compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from labkit.engines.base import BoolArray, FloatArray, IntArray, StepOutput
from labkit.engines.torch_stages import TorchGpt, TorchNetwork, host, tensor_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from labkit.model.gpt import Gpt

_FIRST_CAPACITY, _FIRST_PROMPT = 16, 4  # of the step that is compiled; any other length runs the same graph


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


@dataclass
class _Slots:
    """The cache as the compiled step sees it: read up to `end`, the last position of it written first."""

    keys: Tensor
    values: Tensor
    end: int

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.keys[layer], self.values[layer]
        k[:, :, self.end - 1 : self.end] = keys
        v[:, :, self.end - 1 : self.end] = values
        return k[:, :, : self.end], v[:, :, : self.end]


class CompiledGpt(TorchGpt):
    """`GptStage` whose decode step is one graph. Prompts are read by the eager modules."""

    def __init__(self, network: Gpt, speaker_token: int, mode: str) -> None:
        super().__init__(network, speaker_token)

        # `end` is never below 2: the tracer takes 0 and 1 for constants and would compile a graph for each
        def step(
            x: Tensor, cos: Tensor, sin: Tensor, bias: Tensor, keys: Tensor, values: Tensor, end: int
        ) -> tuple[Tensor, Tensor]:
            hidden = network.run(x, cos, sin, bias[..., :end], _Slots(keys, values, end))[:, 0]
            return network.code_logits(hidden), hidden

        self._compiled = Compiled(step, mode)
        self._bias: Tensor | None = None  # [B, 1, 1, slots of the cache], made by each prefill
        self._compile_one_row()

    def reset(self, batch: int, capacity: int) -> None:
        """The cache gets a position more than asked: a step that fills it whole would be a graph of its own."""
        super().reset(batch, min(capacity + 1, max(capacity, self.network.config.positions)))
        self._capacity = capacity

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
        if cache.length >= self._capacity:
            raise ValueError(
                f"position {cache.length + 1} exceeds the capacity {self._capacity} given to reset"
            )
        cos, sin = self.network.rope_at((cache.length - cache.padding)[:, None])
        end = cache.length + 1
        logits, hidden = self._compiled(
            embedding[:, None], cos, sin, self._bias, cache.keys, cache.values, end
        )
        cache.length = end
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
