"""Small figures of the lab itself: what importing, saying one thing and the harness cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from labkit.measure.samples import SampleRecorder
from labkit.run.process import child_environment
from labkit.scenarios import run_scenario
from labkit.scenarios.base import FirstAudio, IntArray, Take, timed
from labkit.spec import Recipe, RunSpec

_TEXT = "three one four one five"
_IMPORT = "import time; t = time.perf_counter(); import labkit; print(time.perf_counter() - t)"


def import_s(rounds: int = 5) -> float:
    """Least seconds of `import labkit` in a fresh process."""
    return min(float(_python("-c", _IMPORT)) for _ in range(rounds))


def say_cold(voice: str, recipe: str = "torch-fp32") -> dict[str, Any]:
    """One `labkit say` in a fresh process: CPU and wall seconds of the process, and its own figures."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            "say",
            _TEXT,
            "--voice",
            voice,
            "--recipe",
            recipe,
            "--json",
            "-o",
            str(Path(folder) / "a.wav"),
        ]
        before, started = os.times(), time.perf_counter()
        said = json.loads(_python("-m", "labkit", *arguments))
        wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"cold_cpu_s": cpu, "cold_wall_s": wall, "rtf": said["rtf"], "audio_s": said["audio_s"]}


def warm_rtf(voice: str, recipe: Recipe, repeats: int = 3) -> dict[str, Any]:
    """RTF of a recipe on one core, warm, from its own process: medians over `repeats` of one text."""
    code = (
        "import json, sys; from labkit.bench.small import _warm; from labkit.spec import parse_run; "
        "print(json.dumps(_warm(parse_run(json.loads(sys.argv[1]), place='bench'))))"
    )
    spec = RunSpec(recipe=recipe, voice=voice, repeats=repeats, warmups=1)
    figures: dict[str, Any] = json.loads(
        _python("-c", code, json.dumps(spec.model_dump(mode="json", exclude_unset=True)))
    )
    return figures


def harness_overhead(utterance_s: float, rounds: int = 500) -> dict[str, float]:
    """What the harness adds between its clocks, and its share of an utterance that takes `utterance_s`.

    `timed_s` is a call of a driver that does nothing; `recorded_s` is a whole repetition around it, which is
    mostly outside the timed region.
    """
    driver = _Nothing()
    inside = [timed(driver, _TEXT, None)[1]["latency_s"] or 0.0 for _ in range(rounds)]
    spec = RunSpec(recipe=Recipe(name="nothing"), repeats=rounds, warmups=0)
    started = time.perf_counter()
    run_scenario("single", _Bare(driver), spec, (_Text("a", _TEXT),), {}, SampleRecorder())
    recorded = (time.perf_counter() - started) / rounds
    return {"timed_s": median(inside), "recorded_s": recorded, "share": median(inside) / utterance_s}


class _Nothing:
    """A driver that has its answer ready."""

    def __init__(self) -> None:
        self._take = Take(np.zeros(24_000, np.float32), None, ended=True, series={"step_s": [0.001] * 47})

    def speak(self, text: str, codes: IntArray | None) -> Take:
        return self._take

    def first_audio(self, text: str, codes: IntArray | None) -> FirstAudio:
        return FirstAudio(0.0)


class _Bare:
    """A pipeline that is its driver."""

    def __init__(self, driver: _Nothing) -> None:
        self._driver = driver

    def driver(self, spec: RunSpec) -> _Nothing:
        return self._driver


class _Text:
    def __init__(self, id: str, text: str) -> None:
        self.id, self.text = id, text


def _warm(spec: RunSpec) -> dict[str, float]:
    from labkit.scenarios.drivers import open_recipe

    recorder = SampleRecorder()
    pipeline = open_recipe(spec)
    run_scenario("single", pipeline, spec, (_Text("a", _TEXT),), {}, recorder)
    names = ("rtf", "latency_s", "audio_s", "ttft_s", "cpu_s")
    return {name: median(recorder.measured(name)) for name in names}


def _python(*arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=child_environment(1), check=False
    )
    if result.returncode:
        raise RuntimeError(f"python {arguments[0]} failed: {result.stderr.strip()[-600:]}")
    return result.stdout
