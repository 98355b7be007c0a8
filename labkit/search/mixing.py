"""A mix of precisions as a recipe that `ort-cpu` runs: which option names which layer.

It knows the options of the weight-only precisions by name, and measures nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.artifacts import check_recipe
from labkit.errors import SpecError
from labkit.spec import Option, Precision, Recipe, StageChoice

if TYPE_CHECKING:
    from labkit.voices import Voice

EXACT_GPT, EIGHT, FOUR = "fp32", "int8-weight", "int4-weight"
"""The precisions of a layer."""
_ENGINE = "ort-cpu"


@dataclass(frozen=True)
class Scheme:
    """How weights are rounded: inputs that share a scale, and the algorithm of the 4-bit layers (`gptq`: of all)."""

    block: int = 32
    algorithm: str = "rtn"


DEFAULT = Scheme()


def require_scheme(voice: Voice, scheme: Scheme) -> None:
    """SpecError for a block or an algorithm that the precisions do not know, and for a block that does not divide."""
    for precision in (EIGHT, FOUR):
        check_recipe(mixed_recipe("mix", "", (precision,), "fp32", scheme))
    gpt = voice.config.gpt
    widths = (gpt.hidden, gpt.intermediate)
    if any(width % scheme.block for width in widths):
        raise SpecError(
            f"block {scheme.block} does not divide the widths of voice {voice.name!r} ({gpt.hidden} and "
            f"{gpt.intermediate}); {math.gcd(*widths, 128)} does, if it is one that the precisions know."
        )


def recipe_name(voice: Voice, wanted: str | None) -> str:
    """What a mix is called: as wanted, else after the voice. SpecError for what no recipe can be called."""
    name = (
        wanted
        if wanted is not None
        else f"{re.sub(r'[^A-Za-z0-9]+', '-', Path(voice.name).name).strip('-')}-mixed"
    )
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise SpecError(f"name {name!r}: a recipe's name is made of letters, digits, '.', '_' and '-'.")
    return name


def mixed_recipe(
    name: str, description: str, precisions: Sequence[str], decoder: Precision, scheme: Scheme
) -> Recipe:
    """Each layer of the GPT in its own precision; heads and vocoder in fp32."""
    return Recipe(
        name=name,
        description=description,
        gpt=_gpt(precisions, scheme),
        decoder=StageChoice(engine=_ENGINE, precision=decoder),
        vocoder=StageChoice(engine=_ENGINE, precision="fp32"),
    )


def _gpt(precisions: Sequence[str], scheme: Scheme) -> StageChoice:
    """The narrowest precision that is there names the stage; options name the layers that are in a wider one."""
    numbers = {each: _joined(precisions, each) for each in (EXACT_GPT, EIGHT)}
    options: dict[str, Option] = {"block_size": scheme.block}
    if scheme.algorithm != "rtn" and (FOUR in precisions or scheme.algorithm == "gptq"):
        options["algorithm"] = scheme.algorithm
    if numbers[EXACT_GPT]:
        options["fp32_layers"] = numbers[EXACT_GPT]
    if FOUR in precisions:
        if numbers[EIGHT]:
            options["int8_layers"] = numbers[EIGHT]
        return StageChoice(engine=_ENGINE, precision="int4-weight", options=options)
    if EIGHT in precisions:
        return StageChoice(engine=_ENGINE, precision="int8-weight", options=options)
    return StageChoice(engine=_ENGINE, precision="fp32")


def _joined(precisions: Sequence[str], wanted: str) -> str:
    return ",".join(str(i) for i, each in enumerate(precisions) if each == wanted)


def decoder_in(precision: str) -> str:
    """The name of the corner with an exact GPT and the decoder in a precision."""
    return f"decoder-{precision}"
