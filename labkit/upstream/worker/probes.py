"""What is noted inside upstream while it speaks: raw logits, the mel, and the time of decoder and vocoder.

It wraps attributes of the loaded objects; upstream's own files are as they were installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class Probes:
    """Wrappers around the heads, decoders and vocoder of one loaded Chat."""

    def __init__(self, chat: Any) -> None:
        self.seconds: dict[str, dict[str, float]] = {}
        self.mel: Any = None
        self._recording = False
        self._logits: dict[str, list[list[np.ndarray]]] = {}
        gpt = chat.gpt
        gpt.head_code = [
            self._recorded(head, "code", first=index == 0) for index, head in enumerate(gpt.head_code)
        ]
        gpt.head_text = self._recorded(gpt.head_text, "text", first=True)
        for decoder in (chat.decoder, chat.dvae):
            decoder.forward = self._timed(decoder.forward, "decoder")
        chat._vocos_decode = self._timed(chat._vocos_decode, "vocoder")

    def start(self, record_logits: bool) -> None:
        """Forget what was noted before."""
        self.seconds, self.mel, self._recording, self._logits = {}, None, record_logits, {}

    def logits(self, kind: str) -> np.ndarray:
        """Raw logits of the last position of each step: code [S, B, 4, V], text [S, B, V]."""
        steps = self._logits[kind]
        return np.stack([heads[0] if kind == "text" else np.stack(heads, axis=1) for heads in steps])

    def _recorded(
        self, head: Callable[..., torch.Tensor], kind: str, *, first: bool
    ) -> Callable[..., torch.Tensor]:
        def call(hidden: torch.Tensor) -> torch.Tensor:
            logits = head(hidden)
            if self._recording:
                steps = self._logits.setdefault(kind, [])
                if first:
                    steps.append([])
                steps[-1].append(logits[:, -1].detach().numpy().copy())
            return logits

        return call

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            wall, cpu = time.perf_counter(), time.process_time()
            result = function(*arguments, **options)
            self.seconds[stage] = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
            if stage == "decoder":
                self.mel = result.numpy()
            return result

        return call
