"""Recipes: an engine and a precision for each stage; the shipped ones, and those of a user's YAML files.

Whether an engine exists here, and takes these options, is answered by the engines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from labkit.errors import SpecError
from labkit.spec.frozen import FrozenSpec
from labkit.spec.reading import nearest, parse_mapping, read_text, validate

StageName = Literal["gpt", "decoder", "vocoder"]
STAGES: tuple[StageName, ...] = get_args(StageName)
Precision = Literal["fp32", "fp16", "bf16", "int8-dynamic", "int8-static", "int8-weight", "int4-weight"]
Option = bool | int | float | str


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            "a name becomes a file name: letters, digits, '.', '_' and '-', and a letter or digit first"
        )
    return name


Name = Annotated[str, AfterValidator(_check_name)]
"""Of recipes, sweeps and gates."""


class StageChoice(FrozenSpec):
    """Which engine runs a stage, at which precision, with which options of that engine or quantizer."""

    engine: str = "torch"
    precision: Precision = "fp32"
    options: dict[str, Option] = Field(default_factory=dict)


class Recipe(FrozenSpec):
    """A named choice of engine and precision per stage, or a pipeline that brings its own stages."""

    name: Name
    description: str = ""
    gpt: StageChoice = StageChoice()
    decoder: StageChoice = StageChoice()
    vocoder: StageChoice = StageChoice()
    pipeline: Literal["upstream"] | None = None

    @model_validator(mode="after")
    def _pipelines_have_no_stages(self) -> Recipe:
        if self.pipeline and self.model_fields_set & set(STAGES):
            raise ValueError(
                f"recipe {self.name!r} names the pipeline {self.pipeline!r} and stages as well; keep one"
            )
        return self

    @model_serializer(mode="wrap")
    def _leave_out_the_stages_of_a_pipeline(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        return {name: value for name, value in values.items() if not (self.pipeline and name in STAGES)}

    def choices(self) -> dict[StageName, StageChoice]:
        """The choice for each stage in signal order; empty for a pipeline."""
        return {} if self.pipeline else {"gpt": self.gpt, "decoder": self.decoder, "vocoder": self.vocoder}


def default_recipes() -> dict[str, Recipe]:
    """The recipes that ship with the lab."""
    source = resources.files("labkit") / "assets" / "recipes.yaml"
    return parse_recipes(source.read_text(encoding="utf-8"), place="labkit/assets/recipes.yaml")


def load_recipes(*files: Path) -> dict[str, Recipe]:
    """The lab's recipes and those of the given YAML files; a later file replaces an earlier name."""
    recipes = default_recipes()
    for file in files:
        recipes |= read_recipes(file)
    return recipes


def read_recipes(file: Path) -> dict[str, Recipe]:
    """The recipes of one YAML file alone."""
    return parse_recipes(read_text(file), place=str(file))


def parse_recipes(text: str, *, place: str) -> dict[str, Recipe]:
    """Read `name: {gpt: …, decoder: …, vocoder: …}`; `SpecError` names the place and the key."""
    recipes = {}
    for name, body in parse_mapping(text, place).items():
        where = f"{place}: recipe {name!r}"
        if not isinstance(body, dict | None):
            raise SpecError(
                f"{where} must be a mapping such as {{gpt: {{engine: ort-cpu}}}}, not {type(body).__name__}."
            )
        if "name" in (body or {}):
            raise SpecError(f"{where}: leave out the key 'name': a recipe is called what stands before it.")
        recipes[name] = validate(Recipe, {"name": name, **(body or {})}, text, where)
    return recipes


def find_recipe(name: str, recipes: Mapping[str, Recipe]) -> Recipe:
    """The recipe of that name, or a `SpecError` with the nearest known names."""
    if name not in recipes:
        raise SpecError(
            f"recipe {name!r} is unknown{nearest(name, recipes)}; known recipes: {', '.join(recipes)}."
        )
    return recipes[name]
