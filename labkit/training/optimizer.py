"""The optimizer of a stage: AdamW, and for the matrices inside a GPT's layers Muon beside it.

Muon (K. Jordan, https://kellerjordan.github.io/posts/muon/; torch's own) takes a matrix's momentum and makes all its
singular values one before it steps, so that rare directions are learned as fast as common ones. Its steps are scaled to
the size of AdamW's (arXiv 2502.16982, section 2.2), so both follow one learning rate. Knows parameters by name and
nothing of what they do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

MOMENTUM = 0.95


class StageOptimizer:
    """AdamW and perhaps Muon, driven and saved as one."""

    def __init__(
        self, modules: nn.ModuleDict, *, betas: tuple[float, float], weight_decay: float, muon: bool
    ) -> None:
        """Matrices decay; embeddings, norms, biases and scales do not. Rates are set for each step."""
        matrices, decayed, free = [], [], []
        for name, parameter in modules.named_parameters():
            if parameter.dim() < 2 or "embedding" in name:
                free.append(parameter)
            elif muon and ".layers." in name:
                matrices.append(parameter)
            else:
                decayed.append(parameter)
        groups = [
            {"params": decayed, "weight_decay": weight_decay},
            {"params": free, "weight_decay": 0.0},
        ]
        self._parts: dict[str, torch.optim.Optimizer] = {"adamw": torch.optim.AdamW(groups, betas=betas)}
        if matrices:
            self._parts["muon"] = torch.optim.Muon(
                matrices, weight_decay=weight_decay, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw"
            )

    def step(self, rate: float) -> None:
        """One step along the gradients with this learning rate, after which they are gone."""
        for part in self._parts.values():
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._parts.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, part in self._parts.items():
            part.load_state_dict(state_dict[name])
