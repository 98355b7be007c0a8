"""Options that name layers of the GPT, as in `fp32_layers: "0,4"`: their values, and which product is in which layer.

It knows how the exported graph names its products (`3.down.MatMul` is in layer 3) and no weights.
"""

from __future__ import annotations

from labkit.errors import SpecError
from labkit.spec import Option


class LayerList(tuple[Option, ...]):
    """The values of an option that names layers. Unlike other options it is no closed list: its one member is the
    default, no layer. A value is a layer's number, or several joined by commas.
    """

    def __new__(cls) -> LayerList:
        return super().__new__(cls, ("",))

    def canonical(self, option: str, value: Option) -> str:
        """Numbers in order, each once, so that equal choices have equal hashes. SpecError for anything else."""
        if isinstance(value, bool | float):
            raise _refusal(option, value)
        parts = [part.strip() for part in str(value).split(",")] if value != "" else []
        if not all(part.isascii() and part.isdigit() for part in parts):
            raise _refusal(option, value)
        return ",".join(map(str, sorted({int(part) for part in parts})))


def numbers_in(option: str, value: Option) -> frozenset[int]:
    """The numbers that a value names."""
    return frozenset(map(int, filter(None, LayerList().canonical(option, value).split(","))))


def layers_of(option: str, value: Option, layers: int) -> frozenset[int]:
    """The numbers that a value names; SpecError when the voice has no such layer."""
    numbers = numbers_in(option, value)
    if numbers and max(numbers) >= layers:
        raise SpecError(
            f"option {option!r}: there is no layer {max(numbers)}; this voice's GPT has layers 0 to {layers - 1}."
        )
    return numbers


def layer_of(product: str) -> int | None:
    """The layer that a product of the exported GPT belongs to; None for the heads."""
    first = product.partition(".")[0]
    return int(first) if first.isdigit() else None


def _refusal(option: str, value: Option) -> SpecError:
    return SpecError(f"option {option!r} cannot be {value!r}; it names layers: '0', '0,4', or '' for none.")
