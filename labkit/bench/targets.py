"""What the lab set out to reach on the full-size voice and on nano, beside what was reached here.

It knows the figures' names. A target whose figure is missing is neither met nor missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

Figures = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """`met` is None when the figure is missing; `reached` is in the unit of `wanted`."""

    name: str
    wanted: str
    reached: float | None
    met: bool | None


def targets(figures: Figures) -> list[dict[str, Any]]:
    """Every target with its outcome, as plain values."""
    return [asdict(target) for target in _targets(figures)]


def _targets(figures: Figures) -> Iterator[Target]:
    arms = figures["arms"]
    for recipe, least in (("torch-fp32", 1 / 0.9), ("ort-fp32", 1.4), ("ort-int8-dynamic", 3.0)):
        speedup = arms.get(recipe, {}).get("speedup")
        value = speedup["value"] if speedup else None
        yield _target(f"{recipe} step against upstream", f">= {least:.2f}x", value, least.__le__)
    yield _target(
        "full-size load: peak RSS / weights (torch-fp32)",
        "< 1.5",
        _share(arms.get("torch-fp32", {})),
        lambda x: x < 1.5,
    )
    nano = figures["nano"]
    yield _target("labkit say on nano, cold: process time, s", "< 6", nano.get("cold_cpu_s"), lambda x: x < 6)
    # on one core an idle machine's wall time is its CPU time; a busy one's is not
    yield _target(
        "RTF on nano, torch-fp32, one core (CPU time)", "< 0.3", nano.get("warm_cpu_rtf"), lambda x: x < 0.3
    )
    overhead = figures["harness"].get("share")
    yield _target("harness inside the timed region", "< 0.01", overhead, lambda x: x < 0.01)
    yield _target("import labkit, s", "< 0.3", figures.get("import_s"), lambda x: x < 0.3)


def _target(name: str, wanted: str, reached: float | None, good: Callable[[float], bool]) -> Target:
    return Target(name, wanted, reached, None if reached is None else good(reached))


def _share(arm: Figures) -> float | None:
    peak, weights = arm.get("rss_peak_bytes"), arm.get("weights_bytes")
    return peak / weights if peak and weights else None
