"""A GPT stage whose decode step is a recorded CUDA graph: one launch a step instead of some hundreds.

It knows what a graph asks of a step: tensors that never move, shapes that never change, and nothing decided on the
host. So the step attends the whole cache through a mask, and finds its position in a tensor that it advances itself.
A graph belongs to one (batch, capacity); capacities are rounded up so that few are recorded. Prompts, and the
tokens of the refine stage, are read by the eager modules into the same cache.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from labkit.engines.base import BoolArray, FloatArray, IntArray, StepOutput
from labkit.engines.torch_stages import TorchGpt
from labkit.model.kv_cache import MASKED

if TYPE_CHECKING:
    from torch import Tensor

    from labkit.model.gpt import Gpt

Outputs = tuple["Tensor", "Tensor"]
Replay = Callable[[], Outputs]
"""Runs a recorded step; its outputs are the same two tensors every time."""

CAPACITY_STEP = 256
"""Capacities are multiples of this many positions. The step reads all of them: more would read in vain, fewer would
record a graph for every length of prompt."""
_KEPT_GRAPHS = 4
_WARMUP_STEPS = 3  # what PyTorch's notes on CUDA graphs advise before a capture


class StaticStep:
    """One decode step over tensors that stay where they are. It is the cache's `KeyValues` as well."""

    def __init__(self, network: Gpt, batch: int, capacity: int) -> None:
        self.network = network
        self.cache = network.new_cache(batch, capacity)
        # a masked slot gets weight zero, and zero times a NaN of unwritten memory would be NaN
        self.cache.keys.zero_()
        self.cache.values.zero_()
        device = self.cache.keys.device
        self.codes = torch.zeros(batch, network.config.num_codebooks, dtype=torch.long, device=device)
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self.padding = torch.zeros(batch, dtype=torch.long, device=device)
        self.slots = torch.arange(capacity, device=device)

    def begin(self) -> None:
        """Go on after what the eager modules have read into the cache."""
        with torch.inference_mode():
            self.position.fill_(self.cache.length)
            self.padding.copy_(self.cache.padding)

    def __call__(self) -> Outputs:
        """Read `codes`, write the cache at `position`, advance it; -> logits [B, 4, V], hidden [B, D]."""
        network = self.network
        cos, signed_sin = network.rope_at((self.position - self.padding)[:, None])
        unseen = (self.slots > self.position) | (self.slots < self.padding[:, None])  # [B, capacity]
        bias = (unseen * MASKED).to(self.cache.keys.dtype)[:, None, None]
        hidden = network.run(network.embed_codes(self.codes)[:, None], cos, signed_sin, bias, self)[:, 0]
        self.position += 1
        return network.code_logits(hidden), hidden

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All slots, those that were never written included: the mask hides them."""
        k, v = self.cache.keys[layer], self.cache.values[layer]
        k.index_copy_(2, self.position, keys)
        v.index_copy_(2, self.position, values)
        return k, v


def record(step: StaticStep) -> Replay:
    """Capture a step as a CUDA graph, after warming up on a stream of its own; the step's state is used up."""
    torch.cuda.synchronize(step.codes.device)
    aside = torch.cuda.Stream(step.codes.device)
    aside.wait_stream(torch.cuda.current_stream(step.codes.device))
    with torch.cuda.stream(aside):
        for _ in range(_WARMUP_STEPS):
            step()
    torch.cuda.current_stream(step.codes.device).wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = step()

    def replay() -> Outputs:
        graph.replay()
        return outputs

    return replay


class GraphGpt(TorchGpt):
    """`GptStage` over recorded steps. `recorder` turns a step into its replay."""

    def __init__(
        self, network: Gpt, speaker_token: int, recorder: Callable[[StaticStep], Replay] = record
    ) -> None:
        super().__init__(network, speaker_token)
        self._recorder = recorder
        self._graphs: OrderedDict[tuple[int, int], tuple[StaticStep, Replay]] = OrderedDict()
        self._recorded = 0
        self._record_s = 0.0
        self._asked = 0  # positions that the caller may use

    def reset(self, batch: int, capacity: int) -> None:
        positions = self.network.config.positions
        rounded = max(capacity, min(-(-capacity // CAPACITY_STEP) * CAPACITY_STEP, positions))
        self._shape, self._asked = (batch, rounded), capacity
        if self._shape not in self._graphs:
            self._record()
        self._graphs.move_to_end(self._shape)
        self._step, self._replay = self._graphs[self._shape]
        self._cache = self._step.cache
        self._cache.length = 0

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        output = super().prefill(ids, mask, speaker)
        self._step.begin()
        return output

    def advance(self, codes: Tensor) -> Outputs:
        cache = self.kv()
        if cache.length >= self._asked:
            raise ValueError(f"position {cache.length + 1} exceeds the capacity {self._asked} given to reset")
        with torch.inference_mode():
            self._step.codes.copy_(codes)
            outputs = self._replay()
        cache.length += 1
        return outputs

    def step_text(self, ids: IntArray) -> StepOutput:
        output = super().step_text(ids)
        self._step.begin()
        return output

    def figures(self) -> dict[str, float]:
        """Recording is this stage's compiling; see `CompilingStage.figures`."""
        return {"compile_s": self._record_s, "recompiles": max(0, self._recorded - 1)}

    def close(self) -> None:
        self._graphs.clear()
        if self._cache is not None:
            del self._step, self._replay
        super().close()

    def _record(self) -> None:
        while len(self._graphs) >= _KEPT_GRAPHS:
            self._graphs.popitem(last=False)
        started = time.perf_counter()
        with torch.inference_mode():
            step = StaticStep(self.network, *self._shape)
            self._graphs[self._shape] = step, self._recorder(step)
        self._record_s += time.perf_counter() - started
        self._recorded += 1
