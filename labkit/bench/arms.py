"""One long-lived process for each arm of a benchmark, driven in turns by the parent.

An arm that cannot run here is a row that says why. It knows the two kinds of processes and what to ask them; what the
numbers mean is the business of `race`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from labkit.artifacts import prepare
from labkit.bench.llama import require_llama
from labkit.bench.llama_file import model_file
from labkit.bench.worker_process import WorkerProcess
from labkit.pipeline import check_runnable
from labkit.spec import Recipe, StageChoice, StageName
from labkit.upstream.sizes import upstream_sizes, upstream_step_bytes
from labkit.voices import Voice

Tell = Callable[[str], None]
Times = dict[str, list[float]]
"""Seconds of each take: `network_*` always, `step_*` with the draw, `decoder_*` and `vocoder_*` of sound."""
_OF_A_STEP = ("step_weights_bytes", "kv_row_position_bytes")


class Arm(Protocol):
    """What does the same piece of work again and again, when it is asked to."""

    name: str

    def load(self) -> dict[str, Any]: ...

    def ready(self, length: int, takes: int) -> dict[str, Any]:
        """Get to where `takes` pieces of work can be done: a prompt of `length` positions, or `length` steps to
        make sound of.
        """

    def take(self, count: int) -> Times: ...

    def peak_rss_bytes(self) -> int | None:
        """Of its process, so far."""

    def close(self) -> None: ...


class _WorkerArm:
    """What arms in a worker of ours share; `_load` and the two commands tell them apart."""

    _commands = ("prefill", "steps")

    def __init__(self, name: str, cores: Sequence[int]) -> None:
        self.name = name
        self._worker = WorkerProcess(cores)

    def ready(self, length: int, takes: int) -> dict[str, Any]:
        return self._worker.call(self._commands[0], length=length, takes=takes)

    def take(self, count: int) -> Times:
        return self._worker.call(self._commands[1], count=count)

    def peak_rss_bytes(self) -> int | None:
        peak: int | None = self._worker.call("peak")["rss_peak_bytes"]
        return peak

    def close(self) -> None:
        self._worker.close()


class LabArm(_WorkerArm):
    """Decode steps of a recipe of the lab. `stages`: those that are loaded."""

    def __init__(
        self, recipe: Recipe, voice: str, cores: Sequence[int], stages: Sequence[StageName] = ("gpt",)
    ) -> None:
        super().__init__(recipe.name, cores)
        self._recipe = json.dumps(
            {recipe.name: recipe.model_dump(mode="json", exclude={"name"}, exclude_unset=True)}
        )
        self._arguments = {"voice": voice, "threads": len(cores), "stages": list(stages)}

    def load(self) -> dict[str, Any]:
        return self._worker.call("load", recipe=self._recipe, **self._arguments)


class LabSoundArm(LabArm):
    """Decoder and vocoder of a recipe of the lab."""

    _commands = ("hidden", "sound")

    def __init__(self, recipe: Recipe, voice: str, cores: Sequence[int]) -> None:
        super().__init__(recipe, voice, cores, ("decoder", "vocoder"))


class LlamaArm(_WorkerArm):
    """llama.cpp on the voice's GPT; `kind`: how the matrices of its layers are stored."""

    def __init__(self, kind: str, voice: Voice, cores: Sequence[int]) -> None:
        super().__init__(f"llama.cpp-{kind.lower()}", cores)
        self._arguments = {"kind": kind, "voice": str(voice.folder), "threads": len(cores)}
        self._commands = ("llama_prefill", "llama_steps")

    def load(self) -> dict[str, Any]:
        return self._worker.call("llama_load", **self._arguments)


class UpstreamArm:
    """Decode steps of the ChatTTS package in its own environment, which loads all stages always."""

    def __init__(self, voice: Voice, cores: Sequence[int]) -> None:
        from labkit.upstream.client import UpstreamProcess

        self.name = "upstream"
        self._voice = voice
        self._cores = list(cores)
        self._sizes = upstream_sizes(voice.config)
        self._process = UpstreamProcess(threads=len(cores))

    def load(self) -> dict[str, Any]:
        fields = self._process.call(
            "load",
            asset=str(self._voice.folder),
            sizes=self._sizes,
            threads=len(self._cores),
            cores=self._cores,
        ).fields
        return {
            "load_s": fields["load_s"],
            "rss_peak_bytes": fields["peak_rss_bytes"],
            "size_on_disk_bytes": sum(f.stat().st_size for f in self._voice.folder.rglob("*.safetensors")),
            **upstream_step_bytes(self._voice.config.gpt),
        }

    def ready(self, length: int, takes: int) -> dict[str, Any]:
        return self._process.call("bench_prefill", context=length, steps=takes).fields

    def take(self, count: int) -> Times:
        return self._process.call("bench_steps", count=count).fields

    def peak_rss_bytes(self) -> int | None:
        peak: int | None = self._process.call("memory").fields["peak_rss_bytes"]
        return peak

    def close(self) -> None:
        self._process.close()


class UpstreamSoundArm(UpstreamArm):
    """Decoder and vocoder of the ChatTTS package."""

    def load(self) -> dict[str, Any]:
        held = super().load()
        return {name: value for name, value in held.items() if name not in _OF_A_STEP}

    def ready(self, length: int, takes: int) -> dict[str, Any]:
        self._length = length
        return {}

    def take(self, count: int) -> Times:
        return self._process.call("bench_sound", steps=self._length, count=count).fields


def step_arm(
    recipe: Recipe,
    voice: Voice,
    cores: Sequence[int],
    tell: Tell,
    stages: Sequence[StageName] = ("gpt",),
) -> Arm:
    """Make what the recipe needs and start the process that takes its decode steps.

    `UnavailableError` with the remedy when this machine cannot run it.
    """
    if recipe.pipeline == "upstream":
        return UpstreamArm(voice, cores)
    return LabArm(_made(recipe, voice, stages, tell), str(voice.folder), cores, stages)


def sound_arm(recipe: Recipe, voice: Voice, cores: Sequence[int], tell: Tell) -> Arm:
    """As `step_arm`, for the sound that decoder and vocoder make."""
    if recipe.pipeline == "upstream":
        return UpstreamSoundArm(voice, cores)
    return LabSoundArm(_made(recipe, voice, ("decoder", "vocoder"), tell), str(voice.folder), cores)


def llama_arm(kind: str, voice: Voice, cores: Sequence[int], tell: Tell) -> Arm:
    """Write the file that llama.cpp opens, unless it is there, and start the process that takes its steps."""
    require_llama()
    if not model_file(voice.folder, kind).exists():
        tell(f"bench: writing llama.cpp's file in {kind}")
        with WorkerProcess(cores) as writer:
            writer.call("llama_write", kind=kind, voice=str(voice.folder))
    return LlamaArm(kind, voice, cores)


def _made(recipe: Recipe, voice: Voice, stages: Sequence[StageName], tell: Tell) -> Recipe:
    """The recipe with the plainest choice where a stage is not wanted; its files are made in another process."""
    others: dict[str, StageChoice] = {name: StageChoice() for name in recipe.choices() if name not in stages}
    wanted = recipe.model_copy(update=others)
    check_runnable(wanted, "cpu")
    prepare(wanted, voice, progress=lambda line: tell(f"bench: {line}"))
    return wanted
