"""From YAML text to a checked description; a refusal names the place, the key and the nearest known one.

It knows pydantic models, and none in particular.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from labkit.errors import SpecError

Model = TypeVar("Model", bound=BaseModel)


def load_model(model: type[Model], file: Path | str, **replace: Any) -> Model:
    """Read one frozen description of any kind from a YAML file; `SpecError` names the place and the key."""
    text = read_text(Path(file))
    return validate(model, parse_mapping(text, str(file)) | replace, text, str(file))


def read_text(file: Path) -> str:
    """The text of a file; `SpecError` says why it cannot be read."""
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


def parse_mapping(text: str, place: str) -> dict[str, Any]:
    """The names and values of a YAML text; `SpecError` names the place."""
    try:
        values = yaml.load(text, _UniqueKeys)
    except yaml.YAMLError as error:
        raise SpecError(f"{place} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise SpecError(f"{place} must be a mapping of names to values, not {type(values).__name__}.")
    return values


def validate(model: type[Model], values: dict[str, Any], text: str, place: str) -> Model:
    """Plain values as a description; `text`, where they were read from, gives refusals their line."""
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
        return f"{where}: unknown key {keys[-1]!r}{within}{nearest(keys[-1], known)}; known keys: {', '.join(known)}."
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


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause in brackets for an error message: the known name that was probably meant, or nothing."""
    match = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {match[0]!r}?)" if match else ""
