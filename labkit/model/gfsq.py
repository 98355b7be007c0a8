"""Grouped residual finite scalar quantization: features <-> the four code streams.

Each of G groups is projected to len(levels) scalars; R residual stages quantize each scalar in turn, the r-th on a
finer scale. One code is the mixed-radix number of one stage's level indices (first level least significant), and
the codes of a step are ordered group-major: (g0 r0, g0 r1, g1 r0, g1 r1).

The library that defined this for ChatTTS changed it between releases, so the same codes decode differently:

* `"levels-1"` (vector_quantize_pytorch 1.14, the release the published checkpoint was trained with): stage r is
  scaled by (L-1)^-r; a stage quantizes z to round(bound(z)) / (L//2), where
  bound(z) = tanh(z + shift) * (L-1)(1+1e-3)/2 - offset, and the first residual is bound(input) itself.
  (1.22 decodes alike but starts from the unbounded input.)
* `"levels"` (1.32): stage r is scaled by L^-r; the input is soft-clamped to c*tanh(input/c), c = 1 + 1/(L-1), and a
  stage takes the nearest of L points spread symmetrically over [-1, 1].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from labkit.model.config import DvaeConfig

_BOUND_EPS = 1e-3


class _Stages(nn.Module):
    """What both definitions share: scales, and codes as mixed-radix numbers of level indices ("digits").

    All buffers are derived, so none is stored in a checkpoint.
    """

    levels: Tensor
    basis: Tensor
    scales: Tensor

    def __init__(self, levels: tuple[int, ...], residuals: int, base: Tensor):
        super().__init__()
        count = torch.tensor(levels)
        basis = torch.cumprod(torch.tensor((1, *levels[:-1])), 0)
        scales = torch.stack([base.float() ** -r for r in range(residuals)])  # [R, L]
        self.register_buffer("levels", count, persistent=False)
        self.register_buffer("basis", basis, persistent=False)
        self.register_buffer("scales", scales, persistent=False)

    def digits(self, codes: Tensor) -> Tensor:
        """codes [...] -> level indices [..., L]."""
        return (codes.unsqueeze(-1) // self.basis) % self.levels

    def codes(self, digits: Tensor) -> Tensor:
        """level indices [..., L] -> codes [...], int64."""
        return (digits.long() * self.basis).sum(-1)

    def start(self, z: Tensor) -> Tensor:
        """The first residual of the projected features."""
        raise NotImplementedError

    def soft_digits(self, z: Tensor) -> Tensor:
        """Where z lies among the level indices, before rounding."""
        raise NotImplementedError

    def round(self, soft: Tensor) -> Tensor:
        """Level indices; the two definitions break ties differently."""
        raise NotImplementedError

    def values(self, digits: Tensor) -> Tensor:
        """What level indices stand for, in [-1, 1]."""
        raise NotImplementedError


class _BoundedStages(_Stages):
    """The `levels-1` definition."""

    half_range: Tensor
    offset: Tensor
    shift: Tensor
    half_width: Tensor

    def __init__(self, levels: tuple[int, ...], residuals: int):
        count = torch.tensor(levels)
        super().__init__(levels, residuals, count - 1)
        half_range = (count - 1) * (1 + _BOUND_EPS) / 2
        offset = torch.where(count % 2 == 0, 0.5, 0.0)
        self.register_buffer("half_range", half_range, persistent=False)
        self.register_buffer("offset", offset, persistent=False)
        self.register_buffer("shift", torch.atanh(offset / half_range), persistent=False)
        self.register_buffer("half_width", count // 2, persistent=False)

    def _bound(self, z: Tensor) -> Tensor:
        return torch.tanh(z + self.shift) * self.half_range - self.offset

    def start(self, z: Tensor) -> Tensor:
        return self._bound(z)

    def soft_digits(self, z: Tensor) -> Tensor:
        return self._bound(z) + self.half_width

    def round(self, soft: Tensor) -> Tensor:  # half to even, counted from the middle level
        return torch.round(soft - self.half_width) + self.half_width

    def values(self, digits: Tensor) -> Tensor:
        return (digits - self.half_width) / self.half_width


class _SymmetricStages(_Stages):
    """The `levels` definition."""

    clamp: Tensor

    def __init__(self, levels: tuple[int, ...], residuals: int):
        count = torch.tensor(levels)
        super().__init__(levels, residuals, count)
        self.register_buffer("clamp", 1 + 1 / (count - 1), persistent=False)

    def start(self, z: Tensor) -> Tensor:
        return torch.tanh(z / self.clamp) * self.clamp

    def soft_digits(self, z: Tensor) -> Tensor:
        return (self.levels - 1) * (torch.clamp(z, -1.0, 1.0) + 1.0) / 2.0

    def round(self, soft: Tensor) -> Tensor:  # half up
        return torch.floor(soft + 0.5)

    def values(self, digits: Tensor) -> Tensor:
        return digits * (2.0 / (self.levels - 1)) - 1.0


_STAGES: dict[str, type[_BoundedStages] | type[_SymmetricStages]] = {
    "levels-1": _BoundedStages,
    "levels": _SymmetricStages,
}


class GFSQ(nn.Module):
    """features [B, T, vq_dim] <-> codes [B, T, G*R] (int64, below prod(levels))."""

    def __init__(self, config: DvaeConfig):
        super().__init__()
        self.groups, self.residuals = config.groups, config.residuals
        width, scalars = config.vq_dim // config.groups, len(config.levels)
        self.project_in = nn.ModuleList(nn.Linear(width, scalars) for _ in range(self.groups))
        self.project_out = nn.ModuleList(nn.Linear(scalars, width) for _ in range(self.groups))
        self.stages: _Stages = _STAGES[config.residual_scale](config.levels, config.residuals)

    def encode(self, features: Tensor) -> Tensor:
        return self.forward(features)[1]

    def decode(self, codes: Tensor) -> Tensor:
        stages = self.stages
        codes = codes.unflatten(-1, (self.groups, self.residuals))
        values = stages.values(stages.digits(codes)) * stages.scales  # [B, T, G, R, L]
        latent = values.sum(-2)
        return torch.cat([out(latent[..., g, :]) for g, out in enumerate(self.project_out)], -1)

    def forward(
        self, features: Tensor, jitter: tuple[float, ...] = (), residual_dropout: float = 0.0
    ) -> tuple[Tensor, Tensor]:
        """Quantize with straight-through gradients: (quantized features [B, T, vq_dim], codes [B, T, G*R]).

        For training only: `jitter[r]` moves a scalar of stage r by one level with that probability, and
        `residual_dropout` drops all finer stages of a row, both in the features and not in the codes.
        """
        outputs, codes = [], []
        for g, chunk in enumerate(features.chunk(self.groups, -1)):
            latent, group_codes = self._quantize(self.project_in[g](chunk), jitter, residual_dropout)
            outputs.append(self.project_out[g](latent))
            codes += group_codes
        return torch.cat(outputs, -1), torch.stack(codes, -1)

    def _quantize(self, z: Tensor, jitter: tuple[float, ...], dropout: float) -> tuple[Tensor, list[Tensor]]:
        stages = self.stages
        residual, total, codes = stages.start(z), torch.zeros_like(z), []
        for r in range(self.residuals):
            scale = stages.scales[r]
            soft = stages.soft_digits(residual / scale)
            hard = stages.round(soft)
            codes.append(stages.codes(hard.detach()))
            residual = residual - stages.values(hard.detach()) * scale
            heard = hard
            if r < len(jitter) and jitter[r] > 0:
                heard = _jitter(hard, jitter[r], stages.levels)
            value = stages.values(soft + (heard - soft).detach()) * scale
            if r > 0 and dropout > 0:
                keep = torch.rand(value.shape[0], 1, 1, device=value.device) >= dropout
                value = value * keep
            total = total + value
        return total, codes


def _jitter(digits: Tensor, probability: float, levels: Tensor) -> Tensor:
    moved = (torch.rand_like(digits) < probability) * torch.sign(torch.randn_like(digits))
    return torch.minimum(torch.clamp(digits + moved, min=0), levels - 1)
