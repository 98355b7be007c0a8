"""Engine `ort-cpu`: exported graphs on ONNX Runtime's CPU provider.

It knows sessions, bindings and the layout of the exported GPT (`labkit.export.gpt_onnx` describes it); it needs NumPy
and ONNX Runtime and never imports torch. The stage protocol's left-padded prompts are turned to right-padded ones
here, because the attention operator counts each row's positions from its first token.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import (
    Artifact,
    Availability,
    Available,
    BoolArray,
    FloatArray,
    IntArray,
    StepOutput,
    Unavailable,
)
from labkit.errors import ArtifactError, SpecError, UnavailableError
from labkit.spec import Option, StageName

if TYPE_CHECKING:
    import onnxruntime as ort

PROVIDER = "CPUExecutionProvider"
_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}


class OrtCpuEngine:
    """See the module docstring."""

    name = "ort-cpu"
    run_options: Mapping[str, tuple[Option, ...]] = {
        "graph_optimization_level": tuple(_LEVELS),
        "arena": (True, False),
        "memory_pattern": (True, False),
        "prepacking": (True, False),
        "spinning": (True, False),
    }

    def availability(self, device: str) -> Availability:
        if importlib.util.find_spec("onnxruntime") is None:
            return Unavailable("onnxruntime is not installed.", "Install it: pip install 'labkit[cpu]'.")
        if device != "cpu":
            return Unavailable(f"the ort-cpu engine has no device {device!r}.", "Use device cpu.")
        return Available()

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        return ("fp32", "int8-dynamic") if stage == "gpt" else ("fp32",)

    def default_precision(self, stage: StageName) -> str:
        return "fp32"

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> OrtGpt | OrtNetwork:
        answer = self.availability(device)
        if isinstance(answer, Unavailable):
            raise UnavailableError(f"engine 'ort-cpu' on {device!r}: {answer.reason}", answer.remedy)
        model = next((name for name in artifact.files if name.endswith(".onnx")), None)
        if model is None:
            raise ArtifactError(
                f"artifact {artifact.folder} has no .onnx file; delete the folder to rebuild it."
            )
        options = {name: values[0] for name, values in self.run_options.items()}
        options |= {name: value for name, value in artifact.choice.options.items() if name in options}
        session = open_session(artifact.folder / model, threads, options)
        weights = sum((artifact.folder / name).stat().st_size for name in artifact.files)
        if stage == "gpt":
            return OrtGpt(session, artifact, weights)
        return OrtNetwork(session, weights)


def open_session(model: Path, threads: int, options: Mapping[str, Option]) -> ort.InferenceSession:
    """A session on the CPU provider alone; `options` are the engine's `run_options`, complete."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.graph_optimization_level = getattr(
        ort.GraphOptimizationLevel, _LEVELS[str(options["graph_optimization_level"])]
    )
    settings.enable_cpu_mem_arena = bool(options["arena"])
    settings.enable_mem_pattern = bool(options["memory_pattern"])
    settings.add_session_config_entry("session.disable_prepacking", str(int(not options["prepacking"])))
    settings.add_session_config_entry("session.intra_op.allow_spinning", str(int(bool(options["spinning"]))))
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(str(model), settings, providers=[PROVIDER])
    if PROVIDER not in session.get_providers():
        raise UnavailableError(
            f"ONNX Runtime opened {model} with {session.get_providers()} and without {PROVIDER}.",
            "Reinstall onnxruntime.",
        )
    return session


class _OrtStage:
    def __init__(self, session: ort.InferenceSession, file_bytes: int) -> None:
        self.session = session
        self.file_bytes = file_bytes

    def synchronize(self) -> None:
        """A CPU session has finished when `run` returns."""

    def memory(self) -> dict[str, int]:
        """`weights_bytes` is what the stage's files hold; the session's copy of it has about the same size."""
        return {"weights_bytes": self.file_bytes}

    def placement(self) -> dict[str, int]:
        """Nodes of the optimized graph per provider, as ONNX Runtime assigned them."""
        counts: dict[str, int] = {}
        for part in self.session.get_provider_graph_assignment_info():
            counts[part.ep_name] = counts.get(part.ep_name, 0) + len(part.get_nodes())
        return counts

    def close(self) -> None:
        """Free the session."""
        del self.session


class OrtNetwork(_OrtStage):
    """`DecoderStage` or `VocoderStage`: one array in, one float32 array out."""

    def __init__(self, session: ort.InferenceSession, file_bytes: int) -> None:
        super().__init__(session, file_bytes)
        given = session.get_inputs()[0]
        self._input = given.name
        self._dtype = np.int64 if given.type == "tensor(int64)" else np.float32

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        result: FloatArray = self.session.run(
            None, {self._input: np.ascontiguousarray(features, self._dtype)}
        )[0]
        return result


class OrtGpt(_OrtStage):
    """`GptStage` over the exported graph, keys and values in buffers that the graph writes in place."""

    def __init__(self, session: ort.InferenceSession, artifact: Artifact, file_bytes: int) -> None:
        super().__init__(session, file_bytes)
        details = artifact.details
        self.speaker_token = int(details["speaker_token"])
        self.layers, self.heads, self.head_dim = details["layers"], details["heads"], details["head_dim"]
        self.positions, self.codebooks = details["positions"], details["codebooks"]
        self._weights_of_a_step = int(details["step_weights_bytes"])
        self._text = np.load(artifact.folder / "text_embedding.npy", mmap_mode="r")
        self._codes = np.load(artifact.folder / "code_embedding.npy").astype(np.float32)
        self.hidden = self._codes.shape[1]
        self._offsets = np.arange(self.codebooks, dtype=np.int64) * (len(self._codes) // self.codebooks)
        self._shape = (0, 0)
        self._cache: list[NDArray[np.float32]] = []

    def reset(self, batch: int, capacity: int) -> None:
        """Fresh memory costs nothing until it is written: pages of a zeroed array come on first use."""
        if capacity > self.positions:
            raise SpecError(
                f"{capacity} positions (prompt and steps) exceed the voice's {self.positions}; "
                "shorten the text or lower max_steps."
            )
        if self._shape == (batch, capacity):
            return
        self._shape = (batch, capacity)
        self._cache = []
        shape = (batch, self.heads, capacity, self.head_dim)
        self._cache = [np.zeros(shape, np.float32) for _ in range(2 * self.layers)]
        self._step_input = np.zeros((batch, 1, self.hidden), np.float32)
        self._last_position = np.zeros(batch, np.int32)
        self._longest = np.zeros(1, np.int32)
        self._read_at = np.zeros((batch, 1), np.int64)
        self._hidden = np.zeros((batch, self.hidden), np.float32)
        self._logits = np.zeros((batch, len(self._codes)), np.float32)
        self._bind()

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        self._require_cache(len(ids))
        lengths = mask.sum(1)
        if not lengths.all():
            raise ValueError(f"prefill: row {int(lengths.argmin())} of the prompt has no real token")
        embeddings = np.zeros((len(ids), int(lengths.max()), self.hidden), np.float32)
        for row, length in enumerate(lengths):
            tokens = ids[row, mask[row]]
            embeddings[row, :length] = self._text[tokens]
            if speaker is not None:
                embeddings[row, :length][tokens == self.speaker_token] = speaker[row]
        self._last_position[:] = lengths - 1
        self._read_at[:, 0] = lengths - 1
        self._binding.bind_ortvalue_input("embeddings", _shared(embeddings))
        output = self._run()
        self._read_at[:] = 0
        self._binding.bind_ortvalue_input("embeddings", self._step_value)
        return output

    def step(self, codes: IntArray) -> StepOutput:
        self._require_cache(len(codes))
        self._codes[codes + self._offsets].sum(1, out=self._step_input[:, 0])
        self._last_position += 1
        return self._run()

    def step_text(self, ids: IntArray) -> StepOutput:
        self._require_cache(len(ids))
        self._step_input[:, 0] = self._text[ids]
        self._last_position += 1
        return self._run()

    def memory(self) -> dict[str, int]:
        """`step_weights_bytes`: weights that one decode step reads; `kv_row_position_bytes`: of one position of a row."""
        row = self.codebooks * self.hidden * self._codes.itemsize
        position = 2 * self.layers * self.heads * self.head_dim * 4
        sizes = {
            **super().memory(),
            "step_weights_bytes": self._weights_of_a_step + row,
            "kv_row_position_bytes": position,
        }
        kv = sum(each.nbytes for each in self._cache)
        return {**sizes, "kv_bytes": kv} if kv else sizes

    def close(self) -> None:
        if self._cache:
            del self._binding
        self._cache, self._shape = [], (0, 0)
        super().close()

    def _require_cache(self, batch: int) -> None:
        if self._shape[0] != batch:
            raise RuntimeError(
                f"GptStage: {batch} rows given after reset for {self._shape[0]}; call reset first"
            )

    def _bind(self) -> None:
        self._binding = self.session.io_binding()
        self._step_value = _shared(self._step_input)
        self._binding.bind_ortvalue_input("embeddings", self._step_value)
        self._binding.bind_ortvalue_input("last_position", _shared(self._last_position))
        self._binding.bind_ortvalue_input("longest", _shared(self._longest))
        self._binding.bind_ortvalue_input("read_at", _shared(self._read_at))
        self._binding.bind_ortvalue_output("hidden", _shared(self._hidden))
        self._binding.bind_ortvalue_output("logits", _shared(self._logits))
        for i in range(self.layers):
            for kind, array in zip(("key", "value"), self._cache[2 * i : 2 * i + 2], strict=True):
                value = _shared(array)
                self._binding.bind_ortvalue_input(f"past_{kind}_{i}", value)
                self._binding.bind_ortvalue_output(f"present_{kind}_{i}", value)

    def _run(self) -> StepOutput:
        self._longest[0] = self._last_position.max() + 1
        if self._longest[0] > self._shape[1]:
            raise ValueError(
                f"position {self._longest[0]} exceeds the capacity {self._shape[1]} given to reset"
            )
        self.session.run_with_iobinding(self._binding)
        logits = self._logits.reshape(len(self._logits), self.codebooks, -1)
        return StepOutput(logits.copy(), self._hidden.copy())


def _shared(array: NDArray[Any]) -> ort.OrtValue:
    """An OrtValue over the array's own memory: on a CPU nothing is copied, so writing the array feeds the graph."""
    import onnxruntime as ort

    return ort.OrtValue.ortvalue_from_numpy(array)
