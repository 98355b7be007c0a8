"""What is done to a voice on purpose: the faults a gate must find, the nulls it must bear, and graded steps between.

It knows how each is made, on a clip, on the weights of one stage or by a recipe. It measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from labkit.faults import damage
from labkit.faults.damage import Audio
from labkit.sensitivity.ladder import BITS, PRUNED

if TYPE_CHECKING:
    from torch import Tensor, nn

Role = Literal["base", "null", "fault", "graded"]
Place = Literal["gpt", "decoder", "clip", "recipe", "threads"]
SCALE = 1.03  # of the decoder's weights


@dataclass(frozen=True)
class Condition:
    """One way in which the voice speaks.

    role: `base` is the reference itself, a `null` must pass, a `fault` must be found, what is `graded` only tells how
    far the proxies move. place: what is changed; `recipe` and `threads` change nothing but how it is run. Of a GPT the
    clip from its own hidden states is judged, of all others the one from the reference's.
    """

    name: str
    words: str
    role: Role
    place: Place
    on_clip: Callable[[Audio, int], Audio] | None = None
    on_network: Callable[[nn.Module], AbstractContextManager[float]] | None = None
    recipe: str = ""
    afresh: bool = False
    threads: int = 1

    @property
    def heard(self) -> bool:
        """Its clip is made from its own hidden states."""
        return self.place == "gpt"


def _clip(name: str, words: str, role: Role, change: Callable[[Audio, int], Audio]) -> Condition:
    return Condition(name, words, role, "clip", on_clip=change)


def _one_block(network: nn.Module) -> AbstractContextManager[float]:
    """The block in the middle, to 3 bits with one scale a channel."""
    from labkit.model.rounding import units_of
    from labkit.sensitivity.rounding import rounded

    blocks = [unit for unit in units_of(network) if unit.kind == "block"]
    return rounded(network, blocks[len(blocks) // 2], 3, None)


def _heads(network: nn.Module) -> AbstractContextManager[float]:
    from labkit.model.rounding import units_of
    from labkit.sensitivity.rounding import rounded

    (heads,) = (unit for unit in units_of(network) if unit.name == "code_head")
    return rounded(network, heads, 4, None)


def _swapped(network: Any) -> AbstractContextManager[float]:
    from labkit.sensitivity.rounding import changed

    return changed(network, ["code_head"], partial(swap_last_books, network.config.num_codebooks))


def swap_last_books(books: int, module: nn.Module, weight: Tensor, name: str) -> Tensor:
    """The head's rows [books * codes, D] with the last two codebooks in each other's place."""
    import torch

    heads = weight.unflatten(0, (books, -1))
    order = [*range(books - 2), books - 1, books - 2]
    return heads[torch.tensor(order)].flatten(0, 1)


def _scaled(network: nn.Module) -> AbstractContextManager[float]:
    from labkit.model.rounding import units_of
    from labkit.sensitivity.rounding import changed

    modules = dict.fromkeys(name for unit in units_of(network) for name in unit.modules)
    return changed(network, modules, lambda module, weight, name: weight * SCALE)


def _rung(
    kind: Literal["round", "prune"], amount: float
) -> Callable[[nn.Module], AbstractContextManager[float]]:
    def on(network: nn.Module) -> AbstractContextManager[float]:
        from labkit.sensitivity.ladder import damaged

        return damaged(network, kind, amount)

    return on


BASE = Condition("base", "torch FP32", "base", "threads")
NULLS = (
    Condition("threads-2", "torch FP32 on two threads", "null", "threads", threads=2),
    Condition("re-export", "ONNX FP32, exported afresh", "null", "recipe", recipe="ort-fp32", afresh=True),
    Condition("int8", "INT8 (`ort-int8-dynamic`)", "null", "recipe", recipe="ort-int8-dynamic"),
    _clip("noise-60", "noise 60 dB below, inaudible", "null", lambda a, s: damage.with_noise(a, 60, s)),
)
FAULTS = (
    Condition("block-int3", "one GPT layer at INT3", "fault", "gpt", on_network=_one_block),
    Condition("heads-int4", "code heads at INT4", "fault", "gpt", on_network=_heads),
    Condition("heads-swapped", "last two codebooks swapped in the head", "fault", "gpt", on_network=_swapped),
    Condition("decoder-scaled", "decoder weights 3 % larger", "fault", "decoder", on_network=_scaled),
    _clip("low-pass-8k", "low-pass 8 kHz", "fault", lambda a, s: damage.low_passed(a, 8000)),
    _clip("low-pass-4k", "low-pass 4 kHz", "fault", lambda a, s: damage.low_passed(a, 4000)),
    _clip("tail-cut", "300 ms cut from the end", "fault", lambda a, s: damage.cut_short(a, 0.3)),
)
GRADED = (
    _clip("noise-40", "noise 40 dB below", "graded", lambda a, s: damage.with_noise(a, 40, s)),
    _clip("noise-20", "noise 20 dB below", "graded", lambda a, s: damage.with_noise(a, 20, s)),
    _clip("mu-law", "mu-law, 8 bits", "graded", lambda a, s: damage.mu_law(a)),
    _clip("clicks", "a click of 0.3 every half second", "graded", lambda a, s: damage.with_clicks(a)),
    _clip("holes", "50 ms of zeros every second", "graded", lambda a, s: damage.with_holes(a)),
    *(
        Condition(f"gpt-int{bits}", f"whole GPT at INT{bits}", "graded", "gpt", on_network=_rung("round", bits))
        for bits in BITS
    ),
    *(
        Condition(
            f"gpt-pruned-{share * 100:.0f}", f"whole GPT, {share * 100:.0f} % pruned", "graded", "gpt",
            on_network=_rung("prune", share),
        )
        for share in PRUNED
    ),
)  # fmt: skip
CONDITIONS: dict[str, Condition] = {each.name: each for each in (BASE, *NULLS, *FAULTS, *GRADED)}
