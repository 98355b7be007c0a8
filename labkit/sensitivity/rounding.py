"""Weights changed in place and for a while: rounded to few bits, or the small ones set to zero.

Knows networks of linear and convolutional layers. Rounding: symmetric integers with one scale for each output
channel, or for each block of inputs of a channel: the scheme of `int8-weight` and `int4-weight` without a better choice
of scales than the largest magnitude.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from labkit.errors import SpecError

MIN_BITS, MAX_BITS = 2, 8
Kind = Literal["block", "operator", "edge", "all"]
KINDS: tuple[Kind, ...] = ("block", "operator", "edge", "all")
_IN_BLOCK = re.compile(r"(?:layers|blocks)\.\d+(?=\.)")


@dataclass(frozen=True)
class Unit:
    """Weights that are rounded together, by the name of their modules.

    kind: a `block`; an `operator`, the same product in every block; an `edge`, what lies outside the blocks (heads,
    stems); `all`, every block together.
    """

    name: str
    kind: Kind
    modules: tuple[str, ...]


def units_of(network: nn.Module) -> list[Unit]:
    """The parts of a network, in signal order; its linear and convolutional layers, each in a block or an edge."""
    blocks: dict[str, list[str]] = {}
    operators: dict[str, list[str]] = {}
    edges: dict[str, list[str]] = {}
    for name, module in network.named_modules():
        if not isinstance(module, nn.Linear | nn.Conv1d):
            continue
        if match := _IN_BLOCK.search(name):
            blocks.setdefault(match[0], []).append(name)
            operators.setdefault(name.rpartition(".")[2], []).append(name)
        else:
            edges.setdefault(re.sub(r"\.\d+$", "", name), []).append(name)
    inside = [name for names in blocks.values() for name in names]
    groups: list[tuple[Kind, dict[str, list[str]]]] = [
        ("block", blocks),
        ("operator", operators),
        ("edge", edges),
        ("all", {"every block": inside}),
    ]
    return [Unit(name, kind, tuple(names)) for kind, group in groups for name, names in group.items()]


def round_weight(weight: Tensor, bits: int, block: int | None, name: str = "weight") -> Tensor:
    """The nearest values to a weight [out, in, ...] that `bits` can say. `block` inputs share a scale; None: all.

    SpecError when the block does not divide the inputs.
    """
    if not MIN_BITS <= bits <= MAX_BITS:
        raise SpecError(f"{bits} bits: weights are rounded to {MIN_BITS} to {MAX_BITS} bits.")
    flat = weight.flatten(1)
    width = block or flat.shape[1]
    if width < 1 or flat.shape[1] % width:
        raise SpecError(
            f"block size {block} does not divide the {flat.shape[1]} inputs of {name}; "
            f"{math.gcd(flat.shape[1], 128)} does, or leave it out for one scale a channel."
        )
    grouped = flat.unflatten(1, (-1, width))
    largest = 2 ** (bits - 1) - 1
    scale = (grouped.abs().amax(-1, keepdim=True) / largest).clamp(min=torch.finfo(weight.dtype).tiny)
    return ((grouped / scale).round() * scale).flatten(1).view(weight.shape)


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
