"""Weights changed in place and for a while: rounded to few bits (`labkit.model.rounding`), or the small ones zeroed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from torch import Tensor, nn

from labkit.errors import SpecError
from labkit.model.rounding import Kind, Unit, round_weight

KINDS: tuple[Kind, ...] = ("block", "operator", "edge", "all")


def prune_weight(weight: Tensor, share: float) -> Tensor:
    """The weight with the `share` of its values that are smallest in magnitude set to zero; its shape is kept.

    Ties at the threshold fall by position, so that the share is met to one value. SpecError outside 0 < share < 1.
    """
    if not 0 < share < 1:
        raise SpecError(f"a share of {share} to prune: it lies between 0 and 1.")
    new = weight.flatten().clone()
    new[new.abs().argsort(stable=True)[: round(share * len(new))]] = 0
    return new.view(weight.shape)


Change = Callable[[nn.Module, Tensor, str], Tensor]
"""(module, its weight, its name) -> another weight of the same shape."""


@contextmanager
def changed(network: nn.Module, modules: Iterable[str], change: Change) -> Iterator[float]:
    """Within it, the weights of the named modules are others; yields their signal-to-noise ratio in dB (inf when
    they are equal).
    """
    parts = {name: network.get_submodule(name) for name in modules}
    kept = [module.weight for module in parts.values()]
    signal = noise = 0.0
    try:
        for name, module in parts.items():
            weight = _weight(module)
            new = change(module, weight, name)
            signal += float(weight.square().sum())
            noise += float((weight - new).square().sum())
            module.weight = nn.Parameter(new, requires_grad=False)
        yield 10 * math.log10(signal / noise) if noise else math.inf
    finally:
        for module, own in zip(parts.values(), kept, strict=True):
            module.weight = own


def rounded(network: nn.Module, unit: Unit, bits: int, block: int | None) -> AbstractContextManager[float]:
    """`changed`, to `bits`. Convolutions have one scale a channel whatever the block: block schemes are made for
    matrix products.
    """

    def change(module: nn.Module, weight: Tensor, name: str) -> Tensor:
        return round_weight(weight, bits, block if isinstance(module, nn.Linear) else None, name)

    return changed(network, unit.modules, change)


def count(network: nn.Module, unit: Unit) -> int:
    """Weights that the unit rounds; biases are never rounded."""
    return sum(_weight(network.get_submodule(name)).numel() for name in unit.modules)


def _weight(module: nn.Module) -> Tensor:
    assert isinstance(module.weight, Tensor)
    return module.weight.detach()
