"""A driver that speaks nothing in no time, and remembers what it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labkit.scenarios.base import FirstAudio, IntArray, Take
from labkit.spec import Recipe, RunSpec


@dataclass(frozen=True)
class Text:
    id: str
    text: str


@dataclass(frozen=True)
class Reference:
    codes: IntArray


@dataclass
class FakeDriver:
    """`samples` of audio for each text; every call is in `calls` as (method, text, number of codes or None)."""

    samples: int = 24_000
    first: FirstAudio = field(default_factory=lambda: FirstAudio(0.25))
    extra: dict = field(default_factory=dict)
    calls: list[tuple[str, str, int | None]] = field(default_factory=list)

    def speak(self, text: str, codes: IntArray | None) -> Take:
        self.calls.append(("speak", text, None if codes is None else len(codes)))
        audio = np.zeros(self.samples, np.float32)
        return Take(
            audio, codes, ended=True, values={"steps": 3, **self.extra}, series={"step_s": [0.1, 0.2]}
        )

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
        self.calls.append(("first_audio", text, None if codes is None else len(codes)))
        return self.first


class FakePipeline:
    """A whole pipeline that brings its own driver."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def driver(self, spec: RunSpec) -> FakeDriver:
        return self._driver


TEXTS = (Text("a", "one"), Text("b", "two three four"), Text("c", "five six"))
REFERENCES = {text.id: Reference(np.zeros((2 + index, 4), np.int64)) for index, text in enumerate(TEXTS)}


def spec(**changes) -> RunSpec:
    return RunSpec(recipe=Recipe(name="fake"), **changes)
