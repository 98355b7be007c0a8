"""The parts of a network, and rounding their weights to few bits: what a scheme of that width at best leaves of them.

Symmetric integers with one scale for each output channel, or for each block of inputs of a channel: the scheme of
`int8-weight` and `int4-weight` without a better choice of scales than the largest magnitude. Knows networks of linear
and convolutional layers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from labkit.errors import SpecError

MIN_BITS, MAX_BITS = 2, 8
Kind = Literal["block", "operator", "edge", "all"]
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
    if block is not None:
        check_block(block, {name: flat.shape[1]})
    grouped = flat.unflatten(1, (-1, block or flat.shape[1]))
    largest = 2 ** (bits - 1) - 1
    scale = (grouped.abs().amax(-1, keepdim=True) / largest).clamp(min=torch.finfo(weight.dtype).tiny)
    return ((grouped / scale).round() * scale).flatten(1).view(weight.shape)


def check_block(block: int, widths: Mapping[str, int]) -> None:
    """SpecError for a block size that does not divide a width; `widths`: how many inputs each product has, by name."""
    for name, inputs in widths.items():
        if block < 1 or inputs % block:
            raise SpecError(
                f"block size {block} does not divide the {inputs} inputs of {name}; "
                f"{math.gcd(*widths.values(), 128)} does, or leave it out for one scale a channel."
            )


def round_blocks(network: nn.Module, which: str, bits: int) -> None:
    """Round the weights of one block (`which` is its number), or of `all`, for good; one scale a channel.

    SpecError when the network has no block of that number.
    """
    units = units_of(network)
    blocks = [unit for unit in units if unit.kind == "block"]
    chosen = blocks if which == "all" else [u for u in blocks if u.name.rpartition(".")[2] == which]
    if not chosen:
        raise SpecError(f"round_blocks {which!r}: this network has the blocks 0 to {len(blocks) - 1}.")
    for name in (name for unit in chosen for name in unit.modules):
        module = network.get_submodule(name)
        assert isinstance(module.weight, Tensor)
        module.weight = nn.Parameter(
            round_weight(module.weight.detach(), bits, None, name), requires_grad=False
        )
