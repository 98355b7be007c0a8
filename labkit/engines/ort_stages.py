"""Stages over ONNX Runtime sessions, whatever provider they were opened with.

It knows bindings and the layout of the exported GPT (`labkit.export.gpt_onnx` describes it); it needs NumPy and ONNX
Runtime and never imports torch. The stage protocol's left-padded prompts are turned to right-padded ones here,
because the attention operator counts each row's positions from its first token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import Artifact, BoolArray, FloatArray, IntArray, StepOutput
from labkit.engines.portable_gpt import PortableGpt
from labkit.errors import SpecError
from labkit.model.checkpoint import load_embeddings
from labkit.model.istft_numpy import inverse_stft

if TYPE_CHECKING:
    import onnxruntime as ort


class OrtStage:
    """What the three stages share. `huge_page_bytes`: of what the session holds, as much lies in huge pages."""

    huge_page_bytes = 0

    def __init__(self, session: ort.InferenceSession, file_bytes: int) -> None:
        self.session = session
        self.file_bytes = file_bytes

    def synchronize(self) -> None:
        """A CPU session has finished when `run` returns."""

    def memory(self) -> dict[str, int]:
        """`weights_bytes` is what the stage's files hold; the session's copy of it has about the same size."""
        sizes = {"weights_bytes": self.file_bytes}
        return {**sizes, "huge_page_bytes": self.huge_page_bytes} if self.huge_page_bytes else sizes

    def placement(self) -> dict[str, int]:
        """Nodes of the optimized graph per provider, as ONNX Runtime assigned them."""
        counts: dict[str, int] = {}
        for part in self.session.get_provider_graph_assignment_info():
            counts[part.ep_name] = counts.get(part.ep_name, 0) + len(part.get_nodes())
        return counts

    def close(self) -> None:
        """Free the session."""
        del self.session


class OrtNetwork(OrtStage):
    """`DecoderStage` or `VocoderStage`: one array in, one float32 array out.

    Of a vocoder whose graph ends at the spectrum, the inverse transform is done here, `hop` samples a frame.
    """

    def __init__(self, session: ort.InferenceSession, file_bytes: int, hop: int | None = None) -> None:
        super().__init__(session, file_bytes)
        self._hop = hop
        given = session.get_inputs()[0]
        self._input = given.name
        self._dtype = np.int64 if given.type == "tensor(int64)" else np.float32

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        made = self.session.run(None, {self._input: np.ascontiguousarray(features, self._dtype)})
        result: FloatArray = made[0] if self._hop is None else inverse_stft(made[0], made[1], self._hop)
        return result


class OrtPortableGpt(PortableGpt, OrtStage):
    """`GptStage` over the graph of standard operators."""

    def __init__(self, session: ort.InferenceSession, artifact: Artifact, file_bytes: int) -> None:
        OrtStage.__init__(self, session, file_bytes)
        names = [value.name for value in session.get_outputs()]

        def run(feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
            return dict(zip(names, self.session.run(names, dict(feeds)), strict=True))

        PortableGpt.__init__(self, run, artifact, file_bytes)


class OrtGpt(OrtStage):
    """`GptStage` over the exported graph, keys and values in buffers that the graph writes in place."""

    def __init__(self, session: ort.InferenceSession, artifact: Artifact, file_bytes: int) -> None:
        super().__init__(session, file_bytes)
        details = artifact.details
        self.speaker_token = int(details["speaker_token"])
        self.layers, self.heads, self.head_dim = details["layers"], details["heads"], details["head_dim"]
        self.positions, self.codebooks = details["positions"], details["codebooks"]
        self._weights_of_a_step = int(details["step_weights_bytes"])
        embeddings = load_embeddings(artifact.voice_folder)
        self._embeddings = embeddings
        self._codes = embeddings.code.reshape(-1, embeddings.text.shape[1])  # [4 * 626, D]
        self.hidden = self._codes.shape[1]
        self._offsets = np.arange(self.codebooks, dtype=np.int64) * (len(self._codes) // self.codebooks)
        self.cache_type = np.dtype(details.get("cache_type", "float32"))
        self._shape = (0, 0)
        self._cache: list[NDArray[Any]] = []

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
        self._cache = [np.zeros(shape, self.cache_type) for _ in range(2 * self.layers)]
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
            embeddings[row, :length] = self._embeddings.text_rows(tokens)
            if speaker is not None:
                embeddings[row, :length][tokens == self.speaker_token] = speaker[row]
        self._last_position[:] = lengths - 1
        self._read_at[:, 0] = lengths - 1
        output = self._run(embeddings)
        self._read_at[:] = 0
        return output

    def step(self, codes: IntArray) -> StepOutput:
        self._require_cache(len(codes))
        self._codes[codes + self._offsets].sum(1, out=self._step_input[:, 0])
        self._last_position += 1
        return self._run(self._step_input)

    def step_text(self, ids: IntArray) -> StepOutput:
        self._require_cache(len(ids))
        self._step_input[:, 0] = self._embeddings.text_rows(ids)
        self._last_position += 1
        return self._run(self._step_input)

    def memory(self) -> dict[str, int]:
        """With `step_weights_bytes`, read by one decode step, and `kv_row_position_bytes`, one position of one row."""
        row = self.codebooks * self.hidden * self._codes.itemsize
        position = 2 * self.layers * self.heads * self.head_dim * self.cache_type.itemsize
        sizes = {
            **super().memory(),
            "weights_bytes": self.file_bytes + self._embeddings.text.nbytes + self._codes.nbytes,
            "step_weights_bytes": self._weights_of_a_step + row,
            "kv_row_position_bytes": position,
        }
        kv = sum(each.nbytes for each in self._cache)
        return {**sizes, "kv_bytes": kv} if kv else sizes

    def close(self) -> None:
        self._unbind()
        self._cache, self._shape = [], (0, 0)
        super().close()

    def _require_cache(self, batch: int) -> None:
        if self._shape[0] != batch:
            raise RuntimeError(
                f"GptStage: {batch} rows given after reset for {self._shape[0]}; call reset first"
            )

    def _unbind(self) -> None:
        """The binding holds the session, and the buffers that the cache is."""
        if self._cache:
            del self._binding

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

    def _run(self, embeddings: FloatArray) -> StepOutput:
        """One pass over `embeddings` [B, S, D]; of the buffers, all but those of the cache are reused as they are."""
        self._longest[0] = self._last_position.max() + 1
        if self._longest[0] > self._shape[1]:
            raise ValueError(
                f"position {self._longest[0]} exceeds the capacity {self._shape[1]} given to reset"
            )
        self._pass(embeddings)
        logits = self._logits.reshape(len(self._logits), self.codebooks, -1)
        return StepOutput(logits.copy(), self._hidden.copy())

    def _pass(self, embeddings: FloatArray) -> None:
        if embeddings is self._step_input:
            self.session.run_with_iobinding(self._binding)
            return
        self._binding.bind_ortvalue_input("embeddings", _shared(embeddings))
        self.session.run_with_iobinding(self._binding)
        self._binding.bind_ortvalue_input("embeddings", self._step_value)


class OrtCopyingGpt(OrtGpt):
    """`OrtGpt` without binding: every pass is given the cache and gives a new one back, as `session.run` does it.

    It is there to be compared with: what binding saves.
    """

    def _bind(self) -> None:
        kinds = [f"{kind}_{i}" for i in range(self.layers) for kind in ("key", "value")]
        self._past, self._present = ([f"{time}_{kind}" for kind in kinds] for time in ("past", "present"))

    def _unbind(self) -> None:
        """Nothing is bound."""

    def _pass(self, embeddings: FloatArray) -> None:
        feeds = {
            "embeddings": embeddings,
            "last_position": self._last_position,
            "longest": self._longest,
            "read_at": self._read_at,
            **dict(zip(self._past, self._cache, strict=True)),
        }
        self._hidden, self._logits, *self._cache = self.session.run(
            ["hidden", "logits", *self._present], feeds
        )


def _shared(array: NDArray[Any]) -> ort.OrtValue:
    """An OrtValue over the array's own memory: on a CPU nothing is copied, so writing the array feeds the graph."""
    import onnxruntime as ort

    return ort.OrtValue.ortvalue_from_numpy(array)
