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

from labkit.engines.base import StepOutput
from labkit.measure.clocks import read_clocks
from labkit.measure.samples import SampleRecorder
from labkit.run.process import child_environment
from labkit.scenarios import run_scenario
from labkit.scenarios.base import timed
from labkit.scenarios.drivers import StagesDriver, open_recipe
from labkit.spec import AudioPath, Recipe, RunSpec
from labkit.voices import Voice, resolve_voice

_TEXT = "three one four one five"
_STEPS = 80  # 1.7 s of speech
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


def harness_overhead(voice: str, utterance_s: float, rounds: int = 60) -> dict[str, float]:
    """Seconds that the harness adds between its clocks to what synthesis takes, and their share of an utterance.

    Stages that do nothing are driven once as a scenario drives them and once by synthesis alone, in turns; the
    difference of the least CPU times is the harness. `utterance_s`: CPU seconds of a
    real utterance on this machine.
    """
    from labkit.synthesis import Request, speak

    stages = _IdleStages(resolve_voice(voice))
    spec = RunSpec(recipe=Recipe(name="idle"), voice=voice)
    driver = StagesDriver(stages, spec)
    codes = np.ones((_STEPS, stages.voice.config.gpt.num_codebooks), np.int64)
    request = Request(_TEXT, speaker=stages.voice.speaker(None))
    driven, alone = [], []
    for _ in range(rounds):
        driven.append(timed(driver, _TEXT, codes)[1]["cpu_s"] or 0.0)
        before = read_clocks()
        speak(stages, [request], replay=[codes])
        alone.append((read_clocks() - before).cpu_s)
    added = max(0.0, min(driven) - min(alone))
    return {"added_s": added, "idle_utterance_s": min(alone), "share": added / utterance_s}


class _IdleStages:
    """Three stages that answer at once: zeros of the right shapes."""

    audio_path: AudioPath = "hidden"

    def __init__(self, voice: Voice) -> None:
        self.voice = voice
        gpt, mels = voice.config.gpt, voice.config.audio.n_mels
        self._out = StepOutput(
            np.zeros((1, gpt.num_codebooks, gpt.num_code_tokens), np.float32),
            np.zeros((1, gpt.hidden), np.float32),
        )
        self.gpt: Any = self
        self.decoder: Any = lambda features: np.zeros((1, mels, 2 * features.shape[1]), np.float32)
        self.vocoder: Any = lambda mel: np.zeros((1, 256 * (mel.shape[2] - 1)), np.float32)

    def reset(self, batch: int, capacity: int) -> None: ...

    def prefill(self, ids: Any, mask: Any, speaker: Any) -> StepOutput:
        return self._out

    def step(self, codes: Any) -> StepOutput:
        return self._out


class _Text:
    def __init__(self, id: str, text: str) -> None:
        self.id, self.text = id, text


def _warm(spec: RunSpec) -> dict[str, float]:
    recorder = SampleRecorder()
    pipeline = open_recipe(spec)
    run_scenario("single", pipeline, spec, (_Text("a", _TEXT),), {}, recorder)
    names = ("rtf", "latency_s", "audio_s", "ttft_s", "cpu_s")
    figures = {name: median(recorder.measured(name)) for name in names}
    return figures | {"cpu_rtf": figures["cpu_s"] / figures["audio_s"]}


def _python(*arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=child_environment(1), check=False
    )
    if result.returncode:
        raise RuntimeError(f"python {arguments[0]} failed: {result.stderr.strip()[-600:]}")
    return result.stdout
