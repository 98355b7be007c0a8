"""Where the codes come from: upstream's own generator, given noise, or given codes.

`torch.multinomial(p, 1)` draws argmax(p / e) with e ~ Exp(1) (PyTorch's CPU and CUDA kernels do exactly
this), so replacing it inside this process by the same formula over given noise makes two programs draw
alike.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch


class Draws:
    """Replaces `torch.multinomial` while it is entered, and notes the clock after every draw.

    noise: [S, R, V] exponential samples, R = batch x codebooks; codes: [S, R] forced codes; neither:
    upstream's own draw. Forced codes still pay for upstream's draw, so that the time of a step stays
    upstream's.
    """

    def __init__(self, noise: np.ndarray | None = None, codes: np.ndarray | None = None) -> None:
        self.noise = noise
        self.codes = codes
        self.drawn = 0
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __enter__(self) -> Draws:
        self._original: Any = torch.multinomial
        setattr(torch, "multinomial", self._draw)  # noqa: B010 - replacing it is the point
        self._note()
        return self

    def __exit__(self, *_: object) -> None:
        torch.multinomial = self._original

    def wall_s(self) -> list[float]:
        """Seconds from entering to the first draw (prompt and prefill), then from each draw to the next."""
        return np.diff(self.wall).tolist()

    def cpu_s(self) -> list[float]:
        """The same in CPU seconds of this process."""
        return np.diff(self.cpu).tolist()

    def _draw(self, probabilities: torch.Tensor, num_samples: int, **options: Any) -> torch.Tensor:
        step, self.drawn = self.drawn, self.drawn + 1
        if self.noise is not None:
            noise = torch.from_numpy(np.array(self._at(self.noise, step)))
            picked = (probabilities / noise).argmax(dim=-1, keepdim=True)
        else:
            picked = self._original(probabilities, num_samples, **options)
        if self.codes is not None:
            picked = torch.from_numpy(np.array(self._at(self.codes, step), dtype=np.int64))[:, None]
        self._note()
        return picked

    def _at(self, given: np.ndarray, step: int) -> np.ndarray:
        if step >= len(given):
            raise IndexError(
                f"draw {step} was asked for, but noise or codes were given for {len(given)} steps"
            )
        return given[step]

    def _note(self) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
