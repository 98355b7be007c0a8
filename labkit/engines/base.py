"""The contract between synthesis and whatever runs a stage.

It knows the shapes that cross a stage border and how an engine says whether it can run here.
It knows no backend: the registry holds strings, and an engine's module is imported when it is asked for.

Stage borders carry NumPy arrays in host memory (float32 audio, mels, hidden states and logits; int64 ids).
Engines on a device copy the few kilobytes of a step inside `step`, so a timed step includes that copy.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labkit.errors import SpecError, UnavailableError

if TYPE_CHECKING:  # for names of types alone: stages run where pydantic is not installed
    from labkit.spec import Option, StageChoice, StageName

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class StepOutput(NamedTuple):
    """What one GPT step says about the next codes.

    logits: [B, 4, 626] raw code logits; hidden: [B, D] last hidden states after the final norm.
    """

    logits: FloatArray
    hidden: FloatArray


@runtime_checkable
class Stage(Protocol):
    """What every stage offers beside its own call."""

    def synchronize(self) -> None:
        """Wait until all queued device work is done (nothing to do on a CPU)."""

    def memory(self) -> dict[str, int]:
        """Bytes the stage holds, by kind: `weights_bytes`, `kv_bytes`, … (what it knows; no zeros for unknowns)."""

    def placement(self) -> dict[str, int]:
        """How many nodes each provider or device runs, e.g. `{"CPUExecutionProvider": 143}`."""

    def close(self) -> None:
        """Free sessions and buffers."""


@runtime_checkable
class CompilingStage(Protocol):
    """A stage that compiles itself in the process that runs it."""

    def figures(self) -> dict[str, float]:
        """`compile_s`, seconds spent compiling so far, and `recompiles`, graphs beyond the first."""


class GptStage(Stage, Protocol):
    """The autoregressive stage. The KV cache lives inside; batches are left-padded."""

    def reset(self, batch: int, capacity: int) -> None:
        """Make an empty KV cache for `batch` rows of at most `capacity` positions (prompt and steps)."""

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        """Read left-padded prompts.

        ids: [B, S] text token ids; mask: [B, S] True at real tokens; speaker: [B, D] unit vectors that overwrite
        the embedding at each `[spk_emb]` position, or None.
        """

    def step(self, codes: IntArray) -> StepOutput:
        """Feed the codes just drawn, [B, 4], and return the next logits and hidden state."""

    def step_text(self, ids: IntArray) -> StepOutput:
        """Feed one text token per row, [B] (the refine stage), and return the next hidden state."""


class DecoderStage(Stage, Protocol):
    """Acoustic features -> log-mel. Made for one audio path: hidden states [B, T, D] or codes [B, T, 4]."""

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        """Return the log-mel [B, 100, 2T]."""


class VocoderStage(Stage, Protocol):
    """Log-mel [B, 100, F] -> 24 kHz audio [B, 256 * (F - 1)]."""

    def __call__(self, mel: FloatArray) -> FloatArray: ...


@dataclass(frozen=True)
class Available:
    """The engine can run here. `note` says what is not yet verified, if anything."""

    note: str = ""


@dataclass(frozen=True)
class Unavailable:
    """The engine cannot run here: why, and what would change that."""

    reason: str
    remedy: str


Availability = Available | Unavailable


@dataclass(frozen=True)
class Artifact:
    """The files an engine loads for one stage, made by `labkit.artifacts` and never by an engine.

    `folder` holds the files and `manifest.json`; `files` are relative names; `build_s` is null-able because a
    cached artifact was built in another run: then it repeats the recorded build time and `cached` is True.
    `voice_folder` is where a stage finds what no artifact repeats, such as the embedding tables; `size_bytes` counts
    the files alone.
    """

    stage: StageName
    choice: StageChoice
    folder: Path
    files: tuple[str, ...]
    size_bytes: int
    build_s: float | None
    cached: bool
    content_hash: str
    voice_folder: Path
    details: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """One way of running stages. Stateless; `load` returns the stage.

    `run_options`: the stage options that `load` obeys, each with the values it may take, its default first.
    Options that change an artifact's files belong to the maker of that artifact.
    """

    name: str
    run_options: Mapping[str, tuple[Option, ...]]

    def availability(self, device: str) -> Availability:
        """Answer cheaply, importing nothing that may be missing."""

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        """The precisions this engine can run for a stage, on one device or on any."""

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> Any:
        """Load one stage from its artifact; raises `UnavailableError` rather than falling back to another device."""


@runtime_checkable
class ChecksOptions(Protocol):
    """An engine some of whose options make no sense together, for some stage, device or voice."""

    def check_options(
        self,
        stage: StageName,
        options: Mapping[str, Option],
        device: str | None = None,
        blocks: int | None = None,
    ) -> None:
        """`options` are known and have known values; SpecError names those that contradict each other or the device.

        `device` and `blocks`, how many the stage's network has, are None where they are not yet known.
        """


# name -> "module:attribute"; add a line here to add an engine
_REGISTRY: dict[str, str] = {
    "torch": "labkit.engines.torch_engine:TorchEngine",
    "torch-compile": "labkit.engines.torch_compile:TorchCompileEngine",
    "ort-cpu": "labkit.engines.ort_cpu:OrtCpuEngine",
    "openvino": "labkit.engines.openvino_engine:OpenVinoEngine",
}


def engine_names() -> tuple[str, ...]:
    """All registered engine names, in the order they are listed to people."""
    return tuple(_REGISTRY)


def get_engine(name: str) -> Engine:
    """Import and return an engine by name; `SpecError` names the known ones."""
    if name not in _REGISTRY:
        raise SpecError(f"engine {name!r} is unknown; known engines: {', '.join(_REGISTRY)}.")
    module, attribute = _REGISTRY[name].split(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)()
    return engine


def require_available(name: str, device: str) -> Available:
    """Return the engine's `Available`, or raise `UnavailableError` with its reason and remedy."""
    answer = get_engine(name).availability(device)
    if isinstance(answer, Unavailable):
        raise UnavailableError(f"engine {name!r} on {device!r}: {answer.reason}", answer.remedy)
    return answer
