"""Decode steps of upstream's own generate loop, one at a time, so that a parent can interleave them with
others.

`GPT.generate` streams; with a stream batch of one it hands control back after every step. The codes are
forced, so no row ends; upstream's own draw still runs. Two times per step: the whole step (embedding,
network, heads, processors, draw) and the network alone (from the Llama model's entry to the last head).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from .draws import Draws


class StepBench:
    """A prompt of random text ids and the generate loop after it."""

    def __init__(self, chat: Any, *, context: int, steps: int, batch: int, seed: int) -> None:
        self.chat = chat
        config = chat.config.gpt
        random = np.random.Generator(np.random.Philox(seed))
        ids = torch.from_numpy(random.integers(0, config.num_text_tokens, (batch, context), dtype=np.int64))
        self.ids = ids[:, :, None].expand(-1, -1, config.num_vq).contiguous()
        self.mask = torch.ones(batch, context, dtype=torch.bool)
        self.end_code = config.num_audio_tokens - 1
        codes = random.integers(0, self.end_code, (steps + 1, batch * config.num_vq), dtype=np.int64)
        self.draws = Draws(codes=codes)
        self.limit = steps + 1
        self.network: list[tuple[float, float]] = []
        self._steps: Iterator[Any] | None = None

    def prefill(self) -> dict[str, float]:
        """Read the prompt and take the first draw."""
        config = self.chat.config.gpt
        processors = importlib.import_module("ChatTTS.model").gen_logits
        warpers, penalties = processors(num_code=self.end_code, top_P=0.7, top_K=20, repetition_penalty=1.05)
        with torch.no_grad():
            self._steps = self.chat.gpt.generate(
                self.chat.embed(self.ids, self.mask),
                self.ids,
                temperature=torch.full((config.num_vq,), 0.3),
                eos_token=self.end_code,
                attention_mask=self.mask,
                max_new_token=self.limit,
                logits_processors=(*penalties, *warpers),
                show_tqdm=False,
                ensure_non_empty=False,
                stream=True,
                stream_batch=1,
            )
        wall, cpu = self._next()
        return {"prefill_wall_s": wall, "prefill_cpu_s": cpu}

    def take(self, count: int) -> dict[str, list[float]]:
        """Take `count` steps and return the seconds of each, in order."""
        whole, network = [], []
        for _ in range(count):
            whole.append(self._next())
            network.append(self._network())
        return {
            "step_wall_s": [wall for wall, _ in whole],
            "step_cpu_s": [cpu for _, cpu in whole],
            "network_wall_s": [wall for wall, _ in network],
            "network_cpu_s": [cpu for _, cpu in network],
        }

    def _next(self) -> tuple[float, float]:
        if self._steps is None:
            raise RuntimeError("prefill comes before the steps")
        llama = self.chat.gpt.gpt
        heads = self.chat.gpt.head_code
        last_head = heads[-1]
        self.network.clear()

        def entered(*_: Any) -> None:
            self.network.append(clocks())

        def left(hidden: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = last_head(hidden)
            self.network.append(clocks())
            return logits

        hook = llama.register_forward_pre_hook(entered)
        heads[-1] = left
        try:
            with self.draws:
                started = clocks()
                next(self._steps)
                return since(started)
        finally:
            hook.remove()
            heads[-1] = last_head

    def _network(self) -> tuple[float, float]:
        entered, left = self.network
        return left[0] - entered[0], left[1] - entered[1]


def clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(started: tuple[float, float]) -> tuple[float, float]:
    wall, cpu = clocks()
    return wall - started[0], cpu - started[1]
