"""A GPT stage over the portable graph (`labkit.export.gpt_portable` describes it), whatever runtime calls it.

It knows the graph's inputs and outputs and keeps keys and values between calls. Each call hands the whole cache over
and gets a longer one back, which costs a copy of it a step: this is the graph's meaning, not the fast way to run it.
It never imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import Artifact, BoolArray, FloatArray, IntArray, StepOutput
from labkit.errors import SpecError
from labkit.model.checkpoint import load_embeddings

Runner = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""Inputs by name -> outputs by name."""


class PortableGpt:
    """`GptStage` without the parts that a runtime adds: `synchronize`, `placement`, `close`."""

    def __init__(self, run: Runner, artifact: Artifact, file_bytes: int) -> None:
        details = artifact.details
        self.run, self.file_bytes = run, file_bytes
        self.speaker_token = int(details["speaker_token"])
        self.layers, self.heads, self.head_dim = details["layers"], details["heads"], details["head_dim"]
        self.positions, self.codebooks = details["positions"], details["codebooks"]
        self.cache_type = np.dtype(details.get("cache_type", "float32"))
        self._weights_of_a_step = int(details["step_weights_bytes"])
        embeddings = load_embeddings(artifact.voice_folder)
        self._embeddings = embeddings
        self._codes = embeddings.code.reshape(-1, embeddings.text.shape[1])  # [4 * 626, D]
        self._offsets = np.arange(self.codebooks, dtype=np.int64) * (len(self._codes) // self.codebooks)
        self._batch, self._capacity, self._length = 0, 0, 0
        self._cache: dict[str, NDArray[Any]] = {}

    def reset(self, batch: int, capacity: int) -> None:
        if capacity > self.positions:
            raise SpecError(
                f"{capacity} positions (prompt and steps) exceed the voice's {self.positions}; "
                "shorten the text or lower max_steps."
            )
        self._batch, self._capacity, self._length = batch, capacity, 0
        empty = np.zeros((batch, self.heads, 0, self.head_dim), self.cache_type)
        self._cache = {f"past_{kind}_{i}": empty for i in range(self.layers) for kind in ("key", "value")}

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        lengths = mask.sum(1)
        if not lengths.all():
            raise ValueError(f"prefill: row {int(lengths.argmin())} of the prompt has no real token")
        self._require_cache(len(ids))
        self.reset(self._batch, self._capacity)
        longest = int(lengths.max())  # padding that every row has is left away
        ids = ids[:, -longest:]
        embeddings = self._embeddings.text_rows(ids)
        if speaker is not None:
            rows, places = np.nonzero(ids == self.speaker_token)
            embeddings[rows, places] = speaker[rows]
        self._padding = longest - lengths
        return self._advance(embeddings)

    def step(self, codes: IntArray) -> StepOutput:
        self._require_cache(len(codes))
        return self._advance(self._codes[codes + self._offsets].sum(1, dtype=np.float32)[:, None])

    def step_text(self, ids: IntArray) -> StepOutput:
        self._require_cache(len(ids))
        return self._advance(self._embeddings.text_rows(ids)[:, None])

    def memory(self) -> dict[str, int]:
        """With `step_weights_bytes`, read by one decode step, and `kv_row_position_bytes`, one position of one row."""
        sizes = {
            "weights_bytes": self.file_bytes + self._embeddings.text.nbytes + self._codes.nbytes,
            "step_weights_bytes": self._weights_of_a_step + self.codebooks * self._codes[0].nbytes,
            "kv_row_position_bytes": 2 * self.layers * self.heads * self.head_dim * self.cache_type.itemsize,
        }
        kv = sum(each.nbytes for each in self._cache.values())
        return {**sizes, "kv_bytes": kv} if kv else sizes

    def _advance(self, embeddings: FloatArray) -> StepOutput:
        end = self._length + embeddings.shape[1]
        if end > self._capacity:
            raise ValueError(f"position {end} exceeds the capacity {self._capacity} given to reset")
        made = self._pass(embeddings)
        self._length = end
        logits = made["logits"].reshape(len(embeddings), self.codebooks, -1)
        return StepOutput(logits, made["hidden"])

    def _pass(self, embeddings: FloatArray) -> Mapping[str, NDArray[Any]]:
        made = self.run({"embeddings": embeddings, "padding": self._padding, **self._cache})
        self._cache = {name: made[name.replace("past", "present", 1)] for name in self._cache}
        return made

    def _require_cache(self, batch: int) -> None:
        if self._batch != batch:
            raise RuntimeError(
                f"GptStage: {batch} rows given after reset for {self._batch}; call reset first"
            )
