"""Keys and values of the tokens read so far: preallocated for inference, or plain tensors for exporters.

Knows shapes and left padding, and nothing of the network.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from labkit.model.config import GptConfig

MASKED = -6e4
"""Additive bias of a forbidden position; finite even in half precision, so that a padded row's softmax stays finite."""


class KeyValues(Protocol):
    """Where a layer puts its new keys and values, and gets all of them back: [B, heads, T, head_dim]."""

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]: ...


class KvCache:
    """Preallocated keys and values of every layer, [layers, B, heads, capacity, head_dim] each."""

    def __init__(
        self, config: GptConfig, batch: int, capacity: int, dtype: torch.dtype, device: torch.device
    ):
        if capacity > config.positions:
            raise ValueError(f"KvCache: capacity {capacity} exceeds the voice's {config.positions} positions")
        shape = (config.layers, batch, config.heads, capacity, config.head_dim)
        # not zeroed: positions are written before they are read, and unwritten pages take no memory
        self.keys = torch.empty(shape, dtype=dtype, device=device)
        self.values = torch.empty_like(self.keys)
        self.capacity = capacity
        self.length = 0
        self.padding = torch.zeros(batch, dtype=torch.long, device=device)
        self.bias: Tensor | None = None  # [B, 1, 1, capacity], only when some row is padded

    def set_padding(self, mask: Tensor) -> None:
        """Remember the left padding of a prompt; mask [B, S] is True at real tokens."""
        self.padding = mask.shape[1] - mask.sum(1)
        self.bias = None
        if bool(self.padding.any()):
            slots = torch.arange(self.capacity, device=mask.device)
            padded = slots[None] < self.padding[:, None]
            self.bias = (padded * MASKED).to(self.keys.dtype)[:, None, None]

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        end = self.length + keys.shape[2]
        if end > self.capacity:
            raise ValueError(
                f"KvCache: position {end} exceeds the capacity {self.capacity}; make a larger cache"
            )
        k, v = self.keys[layer], self.values[layer]
        k[:, :, self.length : end] = keys
        v[:, :, self.length : end] = values
        return k[:, :, :end], v[:, :, :end]

    def nbytes(self) -> int:
        return self.keys.nbytes + self.values.nbytes


class FunctionalCache:
    """Past and present as plain tensors, (keys, values) per layer: no state is written, so it can be exported."""

    def __init__(self, past: list[tuple[Tensor, Tensor]]):
        self.past = past
        self.present: list[tuple[Tensor, Tensor]] = []

    def update(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        past_keys, past_values = self.past[layer]
        self.present.append((torch.cat([past_keys, keys], 2), torch.cat([past_values, values], 2)))
        return self.present[-1]
