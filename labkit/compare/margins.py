"""The margins: for each metric, which change for the worse is spoken of and which one fails, and on how many items.

It knows the shape of `labkit/assets/margins.yaml` and checks every line of such a file. It knows no scores and
no statistics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from labkit.errors import UserError

Kind = Literal["paired", "count", "speed", "memory"]
Side = Literal["higher", "lower"]


@dataclass(frozen=True)
class Margin:
    """When a change of one metric is one for the worse.

    name: the line's name, shown in verdicts; kind: how scores become a verdict; direction: which way is better;
    warn, fail: changes for the worse, 0 <= warn <= fail, in the metric's unit (a share of the base for speed and
    memory, new defects for counts; `fail` may be infinite: it only warns); minimum: fewest items or processes;
    metric: where the scores stand, the name if empty; ideal: stands in for a base without scores;
    defect_above: a count's score above this is a defect; optional: may be missing; quiet_only: gates only on a
    machine that is declared quiet.
    """

    name: str
    kind: Kind
    direction: Side
    warn: float
    fail: float
    minimum: int
    metric: str = ""
    ideal: float | None = None
    defect_above: float | None = None
    optional: bool = False
    quiet_only: bool = False

    def __post_init__(self) -> None:
        if not self.metric:
            object.__setattr__(self, "metric", self.name)
        for key, allowed in (("kind", get_args(Kind)), ("direction", get_args(Side))):
            if getattr(self, key) not in allowed:
                raise UserError(
                    f"margin {self.name!r}: {key} {getattr(self, key)!r} is unknown; use {' or '.join(allowed)}."
                )
        for key in ("warn", "fail", "ideal", "defect_above"):
            value = getattr(self, key)
            if not (_is_number(value) or (value is None and key in ("ideal", "defect_above"))):
                raise UserError(f"margin {self.name!r}: {key} {value!r} must be a number.")
        for key in ("optional", "quiet_only"):
            if not isinstance(getattr(self, key), bool):
                raise UserError(f"margin {self.name!r}: {key} {getattr(self, key)!r} must be true or false.")
        if self.kind != "count" and not self.warn > 0:
            raise UserError(
                f"margin {self.name!r}: warn {self.warn} must be above 0: a verdict needs an effect that matters."
            )
        if not 0 <= self.warn <= self.fail:
            raise UserError(
                f"margin {self.name!r}: warn {self.warn} must be at least 0 and at most fail {self.fail}."
            )
        if not _is_count(self.minimum):
            raise UserError(
                f"margin {self.name!r}: minimum {self.minimum!r} must be a whole number from 1, or families "
                "with such numbers."
            )
        if self.kind == "paired" and self.minimum < 2:
            raise UserError(f"margin {self.name!r}: a paired metric needs a minimum of 2 or more items.")


_KEYS = {each.name for each in fields(Margin)} - {"name"}
_REQUIRED = ("kind", "direction", "warn", "fail", "minimum")


def load_margins(file: Path | str | None = None, *, family: str | None = None) -> dict[str, Margin]:
    """The margins of a file (the lab's own if None) by name; of one family (`tier1`, `speed`, …) if given.

    A metric that is judged in several families has the minimum of the asked one, else of its first. Raises
    `UserError` for an unreadable file, an unknown or missing key, a wrong value and a family nobody is in.
    """
    if file is None:
        text = (resources.files("labkit") / "assets" / "margins.yaml").read_text(encoding="utf-8")
        return parse_margins(text, place="labkit/assets/margins.yaml", family=family)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"margins {file} cannot be read: {error}.") from error
    return parse_margins(text, place=str(file), family=family)


def parse_margins(text: str, *, place: str, family: str | None = None) -> dict[str, Margin]:
    """As `load_margins`, from YAML text; `place` is named in errors."""
    try:
        lines = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{place} is not valid YAML: {error}") from error
    if not isinstance(lines, dict) or not lines:
        raise UserError(f"{place} must map names of metrics to margins, e.g. `wer: {{kind: paired, …}}`.")
    families: dict[str, None] = {}
    found = {}
    for name, line in lines.items():
        try:
            judged_in = _families(str(name), line)
            families |= dict.fromkeys(judged_in)
            asked = next(iter(judged_in)) if family is None else family
            # the lines of other families are checked, too: a file is right or wrong as a whole
            margin = Margin(
                str(name), **{**line, "minimum": judged_in.get(asked, next(iter(judged_in.values())))}
            )
        except UserError as error:
            raise UserError(f"{place}: {error}") from error
        if asked in judged_in:
            found[margin.name] = margin
    if family is not None and not found:
        raise UserError(f"{place}: no metric is in family {family!r}; families: {', '.join(families)}.")
    return found


def _families(name: str, line: Any) -> dict[str, Any]:
    """Family -> minimum, after the keys of the line were checked; a plain number is the family `all`."""
    if not isinstance(line, Mapping):
        raise UserError(f"margin {name!r} must be a mapping with {', '.join(_REQUIRED)}, not {line!r}.")
    unknown = [key for key in line if key not in _KEYS]
    if unknown:
        raise UserError(
            f"margin {name!r} has the unknown key {unknown[0]!r}; keys: {', '.join(sorted(_KEYS))}."
        )
    missing = [key for key in _REQUIRED if line.get(key) is None]
    if missing:
        raise UserError(f"margin {name!r} has no {missing[0]}; give {', '.join(_REQUIRED)}.")
    minimum = line["minimum"]
    if not isinstance(minimum, Mapping):
        return {"all": minimum}
    wrong = [family for family, count in minimum.items() if not _is_count(count)]
    if wrong or not minimum:
        shown = f"{wrong[0]}: {minimum[wrong[0]]!r}" if wrong else "{}"
        raise UserError(
            f"margin {name!r}: minimum {shown} must be a whole number from 1, e.g. {{tier2: 24}}."
        )
    return {str(family): count for family, count in minimum.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
