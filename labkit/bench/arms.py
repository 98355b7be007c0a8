"""One long-lived process for each arm of a benchmark, driven in turns by the parent.

An arm that cannot run here is a row that says why. It knows processes and their two protocols; what the numbers
mean is the business of `steps`.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from typing import IO, Any, Protocol, Self

from labkit.errors import LabError, UnavailableError
from labkit.measure.roofline import float32_step_weights
from labkit.run.process import child_environment, kill_tree
from labkit.spec import Recipe
from labkit.voices import Voice

Steps = dict[str, list[float]]


class Arm(Protocol):
    """What takes steps when it is asked to. The times of steps are `network_*` and `step_*` (with the draw)."""

    name: str

    def load(self) -> dict[str, Any]: ...

    def prefill(self, context: int, steps: int) -> dict[str, Any]: ...

    def steps(self, count: int) -> Steps: ...

    def close(self) -> None: ...


class WorkerProcess:
    """A `labkit.bench.worker` pinned to a core."""

    def __init__(self, core: int) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "labkit.bench.worker", str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=child_environment(1),
            encoding="utf-8",
        )

    def call(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Ask and wait; `LabError` when the worker reports an exception or has died."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._log.seek(0)
            words = self._log.read().decode(errors="replace")[-1000:]
            raise LabError(
                f"the bench worker ended with code {self._process.wait()} during {command!r}: {words}"
            )
        reply: dict[str, Any] = json.loads(line)
        if not reply.pop("ok"):
            raise LabError(f"{command}: {reply['type']}: {reply['message']}")
        return reply

    def close(self) -> None:
        """End the worker and whatever it started."""
        if self._process.poll() is None:
            kill_tree(self._process.pid)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # of a request that a dead worker never read
                    pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LabArm:
    """A recipe of the lab."""

    def __init__(self, recipe: Recipe, voice: str, core: int) -> None:
        self.name = recipe.name
        self._recipe = json.dumps(
            {recipe.name: recipe.model_dump(mode="json", exclude={"name"}, exclude_unset=True)}
        )
        self._voice = voice
        self._worker = WorkerProcess(core)

    def load(self) -> dict[str, Any]:
        return self._worker.call("load", recipe=self._recipe, voice=self._voice)

    def prefill(self, context: int, steps: int) -> dict[str, Any]:
        return self._worker.call("prefill", context=context, steps=steps)

    def steps(self, count: int) -> Steps:
        return self._worker.call("steps", count=count)

    def close(self) -> None:
        self._worker.close()


class UpstreamArm:
    """The ChatTTS package in its own environment."""

    def __init__(self, voice: Voice, core: int) -> None:
        from labkit.upstream.client import UpstreamProcess
        from labkit.upstream.sizes import upstream_sizes

        self.name = "upstream"
        self._voice = voice
        self._core = core
        self._sizes = upstream_sizes(voice.config)
        self._process = UpstreamProcess(threads=1)

    def load(self) -> dict[str, Any]:
        fields = self._process.call(
            "load", asset=str(self._voice.folder), sizes=self._sizes, threads=1, core=self._core
        ).fields
        gpt = self._voice.config.gpt
        weights = float32_step_weights(
            layers=gpt.layers,
            hidden=gpt.hidden,
            intermediate=gpt.intermediate,
            head_rows=gpt.num_codebooks * gpt.num_code_tokens,
        )
        return {
            "load_s": fields["load_s"],
            "rss_peak_bytes": fields["peak_rss_bytes"],
            "step_weights_bytes": weights,
            "kv_row_position_bytes": 2 * gpt.layers * gpt.hidden * 4,
        }

    def prefill(self, context: int, steps: int) -> dict[str, Any]:
        return self._process.call("bench_prefill", context=context, steps=steps).fields

    def steps(self, count: int) -> Steps:
        return self._process.call("bench_steps", count=count).fields

    def close(self) -> None:
        self._process.close()


def open_arm(recipe: Recipe, voice: Voice, core: int) -> Arm:
    """Start an arm's process; `UnavailableError` with the remedy when this machine cannot run it."""
    if recipe.pipeline == "upstream":
        return UpstreamArm(voice, core)
    if recipe.pipeline:
        raise UnavailableError(f"pipeline {recipe.pipeline!r} has no bench.", "Leave it out.")
    return LabArm(recipe, str(voice.folder), core)
