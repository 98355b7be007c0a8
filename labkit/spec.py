"""What is asked for: recipes, runs and sweeps as frozen objects, their hashes, YAML in and out.

It knows names and numbers only. Whether an engine, voice or corpus exists here is answered by those modules.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from labkit.errors import SpecError

StageName = Literal["gpt", "decoder", "vocoder"]
STAGES: tuple[StageName, ...] = get_args(StageName)
Precision = Literal["fp32", "fp16", "bf16", "int8-dynamic", "int8-static", "int8-weight", "int4-weight"]
AudioPath = Literal["hidden", "codes"]
ScenarioName = Literal["replay", "single", "stream", "batch", "long-text", "load", "soak"]
PIPELINES = ("upstream",)  # recipes that bring all three stages themselves
AXES = ("voice", "corpus", "recipe", "scenario", "device", "threads", "seed", "speaker", "audio_path")
MAX_THREADS = 256  # thread pools of this many start anywhere; OpenMP crashes with tens of thousands
Threads = Annotated[int, Field(ge=1, le=MAX_THREADS)]
Seed = Annotated[int, Field(ge=0)]
_DEVICE = re.compile(r"cpu|cuda(:\d+)?")
Option = bool | int | float | str
Model = TypeVar("Model", bound=BaseModel)


class FrozenSpec(BaseModel):
    """Base of all descriptions: immutable, strict, hashable by content."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def content_hash(self) -> str:
        """sha256 of the canonical JSON: equal specs have equal hashes on every machine."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class StageChoice(FrozenSpec):
    """Which engine runs a stage, at which precision, with which options of that engine or quantizer."""

    engine: str = "torch"
    precision: Precision = "fp32"
    options: dict[str, Option] = Field(default_factory=dict)


class Recipe(FrozenSpec):
    """A named choice of engine and precision per stage, or a pipeline that brings its own stages."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
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


class Limits(FrozenSpec):
    """When a run is stopped from outside. `memory_gb` counts the run's process tree."""

    seconds: float = Field(600.0, gt=0)
    memory_gb: float | None = Field(None, gt=0)


class RunSpec(FrozenSpec):
    """One run, complete: two equal RunSpecs do the same work."""

    recipe: Recipe
    voice: str = "nano"
    scenario: ScenarioName = "single"
    corpus: str = "nano-eval"
    texts: int | None = Field(None, ge=1, description="use only the first N texts of the corpus")
    device: str = "cpu"
    threads: Threads = 1
    seed: Seed = 0
    speaker: str | None = Field(None, description="speaker name; null takes the voice's first")
    audio_path: AudioPath = "hidden"
    repeats: int = Field(3, ge=1)
    warmups: int = Field(1, ge=0)
    max_steps: int = Field(2048, ge=1, le=4096)
    quality: bool = True
    keep_audio: bool = False
    limits: Limits = Limits()

    def work_hash(self) -> str:
        """Hash of the work alone: limits and kept audio do not change what is measured."""
        return self.model_copy(update={"limits": Limits(), "keep_audio": False}).content_hash()


class SweepSpec(FrozenSpec):
    """A grid of runs: lists are axes."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    description: str = ""
    voice: tuple[str, ...] = ("nano",)
    corpus: tuple[str, ...] = ("nano-eval",)
    recipe: tuple[str, ...]
    scenario: tuple[ScenarioName, ...] = ("single",)
    device: tuple[str, ...] = ("cpu",)
    threads: tuple[Threads, ...] = (1,)
    seed: tuple[Seed, ...] = (0,)
    speaker: tuple[str | None, ...] = (None,)
    audio_path: tuple[AudioPath, ...] = ("hidden",)
    texts: int | None = Field(None, ge=1)
    repeats: int = Field(3, ge=1)
    warmups: int = Field(1, ge=0)
    max_steps: int = Field(2048, ge=1, le=4096)
    quality: bool = True
    keep_audio: bool = True
    baseline: str | None = None
    limits: Limits = Limits()

    @field_validator(*AXES, mode="before")
    @classmethod
    def _axis(cls, value: Any) -> Any:
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not values:
            raise ValueError("an axis needs at least one value")
        if any(value in values[:i] for i, value in enumerate(values)):
            raise ValueError(f"an axis names a value twice: {list(values)}")
        return values

    @model_validator(mode="after")
    def _baseline_is_a_recipe(self) -> SweepSpec:
        if self.baseline is not None and self.baseline not in self.recipe:
            raise ValueError(f"baseline {self.baseline!r} is not among the recipes {list(self.recipe)}")
        return self

    def runs(self, recipes: Mapping[str, Recipe]) -> list[RunSpec]:
        """Expand the grid, recipes innermost so that neighbours in time are the ones compared."""
        axes = itertools.product(
            self.voice, self.corpus, self.scenario, self.device, self.threads, self.seed,
            self.speaker, self.audio_path, self.recipe,
        )  # fmt: skip
        return [
            RunSpec(
                recipe=find_recipe(recipe, recipes), voice=voice, corpus=corpus, scenario=scenario, device=device,
                threads=threads, seed=seed, speaker=speaker, audio_path=audio_path, texts=self.texts,
                repeats=self.repeats, warmups=self.warmups, max_steps=self.max_steps, quality=self.quality,
                keep_audio=self.keep_audio, limits=self.limits,
            )
            for voice, corpus, scenario, device, threads, seed, speaker, audio_path, recipe in axes
        ]  # fmt: skip


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
    return parse_recipes(_read(file), place=str(file))


def parse_recipes(text: str, *, place: str) -> dict[str, Recipe]:
    """Read `name: {gpt: …, decoder: …, vocoder: …}`; `SpecError` names the place and the key."""
    recipes = {}
    for name, body in _mapping(text, place).items():
        where = f"{place}: recipe {name!r}"
        if not isinstance(body, dict | None):
            raise SpecError(
                f"{where} must be a mapping such as {{gpt: {{engine: ort-cpu}}}}, not {type(body).__name__}."
            )
        recipes[name] = _validate(Recipe, {"name": name, **(body or {})}, text, where)
    return recipes


def find_recipe(name: str, recipes: Mapping[str, Recipe]) -> Recipe:
    """The recipe of that name, or a `SpecError` with the nearest known names."""
    if name not in recipes:
        raise SpecError(
            f"recipe {name!r} is unknown{_nearest(name, recipes)}; known recipes: {', '.join(recipes)}."
        )
    return recipes[name]


def check_device(device: str) -> None:
    """Refuse a device that no engine can mean; whether it is there is the engine's answer."""
    if not _DEVICE.fullmatch(device):
        raise SpecError(f"device {device!r} is unknown; known devices: cpu, cuda, cuda:N.")


def load_sweep(file: Path | str, **replace: Any) -> SweepSpec:
    """Read one sweep from a YAML file; `replace` overrides its keys."""
    return load_model(SweepSpec, file, **replace)


def load_model(model: type[Model], file: Path | str, **replace: Any) -> Model:
    """Read one frozen description of any kind from a YAML file; `SpecError` names the place and the key."""
    text = _read(Path(file))
    return _validate(model, _mapping(text, str(file)) | replace, text, str(file))


def parse_run(values: Mapping[str, Any], *, place: str) -> RunSpec:
    """Validate the plain values of one run (JSON or notebook parameters)."""
    return _validate(RunSpec, dict(values), "", place)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{file} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"{file} cannot be read as UTF-8 text: {error}.") from error


class _UniqueKeys(yaml.SafeLoader):
    """Plain YAML, except that a key given twice is an error: the first value would be lost without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                mark = node.value[i][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", mark)
        return super().construct_mapping(node, deep)


def _mapping(text: str, place: str) -> dict[str, Any]:
    try:
        values = yaml.load(text, _UniqueKeys)
    except yaml.YAMLError as error:
        raise SpecError(f"{place} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise SpecError(f"{place} must be a mapping of names to values, not {type(values).__name__}.")
    return values


def _validate(model: type[Model], values: dict[str, Any], text: str, place: str) -> Model:
    try:
        # JSON mode takes lists for tuples while staying strict about every scalar
        return model.model_validate_json(json.dumps(values))
    except ValidationError as error:
        raise SpecError("\n".join(_explain(model, item, text, place) for item in error.errors())) from error
    except TypeError as error:
        raise SpecError(f"{place}: {error}; use plain numbers, text, true/false or lists.") from error


def _explain(model: type[BaseModel], item: Any, text: str, place: str) -> str:
    path = [str(part) for part in item["loc"]]
    keys = [part for part in item["loc"] if isinstance(part, str)]
    where = f"{place}{_line_of(keys[-1], text) if keys else ''}"
    if item["type"] == "extra_forbidden":
        known = _fields(model, keys[:-1])
        within = f" in {'.'.join(keys[:-1])}" if len(keys) > 1 else ""
        return f"{where}: unknown key {keys[-1]!r}{within}{_nearest(keys[-1], known)}; known keys: {', '.join(known)}."
    words = item["msg"].removeprefix("Value error, ")
    if not path:  # about the whole: the words name what is wrong
        return f"{where}: {words}."
    value = "" if item["type"] == "missing" else f" (got {item['input']!r})"
    return f"{where}: {'.'.join(path)}: {words}{value}"


def _fields(model: type[BaseModel], path: Iterable[str]) -> list[str]:
    """Names of the fields of the model that is reached by the path."""
    for key in path:
        field = model.model_fields[key].annotation
        assert isinstance(field, type)
        model = field
    return list(model.model_fields)


def _line_of(key: str, text: str) -> str:
    """Where a key stands, when it stands in one place alone."""
    lines = [
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if re.search(rf"(?:^|[\s{{,]){re.escape(key)}\s*:", line.partition(" #")[0])
    ]
    return f", line {lines[0]}" if len(lines) == 1 else ""


def _nearest(name: str, known: Iterable[str]) -> str:
    match = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {match[0]!r}?" if match else ""
