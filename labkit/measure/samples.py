"""The recorder: raw samples in the order they were taken, warm-ups marked as such.

It computes no statistics: whoever reads the samples does. A missing value is None and carries its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["warmup", "measured"]


@dataclass(frozen=True)
class RawSample:
    """One repetition of one text. Names of values carry their units (`latency_s`, `rss_bytes`)."""

    phase: Phase
    repetition: int
    item: str
    order: int
    values: dict[str, float | int | None]
    reasons: dict[str, str] = field(default_factory=dict)
    ended: bool | None = None
    flags: tuple[str, ...] = ()
    series: dict[str, list[float]] = field(default_factory=dict)


class SampleRecorder:
    """Collects samples and numbers them as they come; `on_sample` hears of each at once."""

    def __init__(self, on_sample: Callable[[RawSample], None] | None = None) -> None:
        self.samples: list[RawSample] = []
        self._on_sample = on_sample

    def add(
        self,
        phase: Phase,
        repetition: int,
        item: str,
        values: Mapping[str, float | int | None],
        *,
        reasons: Mapping[str, str] | None = None,
        ended: bool | None = None,
        flags: Sequence[str] = (),
        series: Mapping[str, Sequence[float]] | None = None,
    ) -> RawSample:
        """Keep one sample; a null value without a reason is a `ValueError`, as it would be in the store."""
        reasons = dict(reasons or {})
        silent = sorted(name for name, value in values.items() if value is None and name not in reasons)
        if silent:
            raise ValueError(f"sample {item!r}: null without a reason: {', '.join(silent)}")
        sample = RawSample(
            phase=phase,
            repetition=repetition,
            item=item,
            order=len(self.samples),
            values=dict(values),
            reasons=reasons,
            ended=ended,
            flags=tuple(flags),
            series={name: [float(value) for value in numbers] for name, numbers in (series or {}).items()},
        )
        self.samples.append(sample)
        if self._on_sample is not None:
            self._on_sample(sample)
        return sample

    def measured(self, name: str) -> list[float]:
        """The values of one name over all measured samples that have it."""
        return [
            float(value)
            for sample in self.samples
            if sample.phase == "measured" and (value := sample.values.get(name)) is not None
        ]

    def series(self, name: str) -> list[float]:
        """One raw series, joined over all measured samples."""
        return [
            value
            for sample in self.samples
            if sample.phase == "measured"
            for value in sample.series.get(name, ())
        ]
