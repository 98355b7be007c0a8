"""What the lab set out to reach on the full-size voice and on nano, beside what was reached here.

It knows the figures' names. A target whose figure is missing is neither met nor missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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


def peer_targets(races: Mapping[str, Figures]) -> list[dict[str, Any]]:
    """What `bench peers` set out to reach, with its outcomes, as plain values."""
    return [asdict(target) for target in _peer_targets(races)]


def _peer_targets(races: Mapping[str, Figures]) -> Iterator[Target]:
    steps, sound, threads = (races.get(name, {}).get("arms", {}) for name in ("step", "sound", "threads"))
    int8 = [row for name, row in steps.items() if name.startswith("ort-int8")]
    int4 = [row for name, row in steps.items() if name.startswith("ort-int4")]
    fp32, dynamic = steps.get("ort-fp32", {}), steps.get("ort-int8-dynamic", {})
    yield _at_least("ort-fp32 step against upstream", 1.5, _ratio(fp32))
    yield _at_least("ort-fp32 step, share of the roofline", 0.8, fp32.get("roofline_share"))
    yield _at_least("best INT8 step against upstream", 4.5, _best(map(_ratio, int8)))
    yield _at_least(
        "best INT8 step, share of the roofline", 0.55, _best(row.get("roofline_share") for row in int8)
    )
    yield _at_least("best INT4 step against upstream", 5.5, _best(map(_ratio, int4)))
    yield _at_least(
        "torch-compile-bf16 step against upstream", 1.8, _ratio(steps.get("torch-compile-bf16", {}))
    )
    ours = [row for name, row in sound.items() if name != "upstream"]
    yield _at_least("best decoder and vocoder against upstream", 2.8, _best(map(_ratio, ours)))
    doubled = [row for name, row in threads.items() if row.get("base") and name.startswith("ort")]
    yield _at_least("two threads against one, best of ONNX Runtime's", 1.5, _best(map(_ratio, doubled)))
    yield _target(
        "INT8 GPT: peak RSS, MB", "<= 400", _mega(dynamic.get("rss_run_peak_bytes")), lambda x: x <= 400
    )
    yield _target(
        "INT8 GPT: on disk, MB", "<= 200", _mega(dynamic.get("size_on_disk_bytes")), lambda x: x <= 200
    )


def _at_least(name: str, least: float, value: float | None) -> Target:
    return _target(name, f">= {least:g}", value, least.__le__)


def _ratio(row: Figures) -> float | None:
    return row["speedup"]["value"] if row.get("speedup") else None


def _best(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mega(count: float | None) -> float | None:
    return None if count is None else count / 1e6
