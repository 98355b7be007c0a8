"""Stages over models that OpenVINO has compiled.

It knows requests, their state and the inputs of the GPT (`labkit.export.gpt_openvino` describes them); it needs NumPy
and OpenVINO and never imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import Artifact, FloatArray
from labkit.engines.portable_gpt import PortableGpt
from labkit.model.istft_numpy import inverse_stft

if TYPE_CHECKING:
    from openvino import CompiledModel

_NO_WORK = ("Input", "Output")
"""Layers of a compiled model that only hold arrays."""


class OpenVinoStage:
    """What the three stages share. `huge_page_bytes`: of what the model holds, as much lies in huge pages."""

    huge_page_bytes = 0

    def __init__(self, compiled: CompiledModel, file_bytes: int) -> None:
        self.compiled, self.file_bytes = compiled, file_bytes
        self._request = compiled.create_infer_request()

    def synchronize(self) -> None:
        """A request has finished when `infer` returns."""

    def memory(self) -> dict[str, int]:
        """`weights_bytes` is what the stage's files hold; beside the mapped files OpenVINO has a repacked copy."""
        sizes = {"weights_bytes": self.file_bytes}
        return {**sizes, "huge_page_bytes": self.huge_page_bytes} if self.huge_page_bytes else sizes

    def placement(self) -> dict[str, int]:
        """Layers of the compiled model, all of them on the devices that it was compiled for."""
        layers = [
            node
            for node in self.compiled.get_runtime_model().get_ops()
            if node.get_rt_info()["layerType"].astype(str) not in _NO_WORK
        ]
        return {"+".join(self.compiled.get_property("EXECUTION_DEVICES")): len(layers)}

    def close(self) -> None:
        """Free the model, its state with it."""
        del self._request, self.compiled


class OpenVinoNetwork(OpenVinoStage):
    """`DecoderStage` or `VocoderStage`: one array in, one float32 array out.

    Of a vocoder whose graph ends at the spectrum, the inverse transform is done here, `hop` samples a frame.
    """

    def __init__(self, compiled: CompiledModel, file_bytes: int, hop: int | None = None) -> None:
        super().__init__(compiled, file_bytes)
        self._hop = hop
        self._dtype = compiled.input(0).get_element_type().to_dtype()

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        made = self._request.infer([np.ascontiguousarray(features, self._dtype)], share_inputs=True)
        result: FloatArray = made[0] if self._hop is None else inverse_stft(made[0], made[1], self._hop)
        return result


class OpenVinoGpt(PortableGpt, OpenVinoStage):
    """`GptStage` whose keys and values are the request's state, which OpenVINO writes in place."""

    def __init__(self, compiled: CompiledModel, artifact: Artifact, file_bytes: int, cache_item: int) -> None:
        """cache_item: bytes of one number in the state."""
        OpenVinoStage.__init__(self, compiled, file_bytes)
        PortableGpt.__init__(self, self._infer, artifact, file_bytes)
        self._cache_item = cache_item
        self._bound: dict[str, NDArray[Any]] = {}
        self._repack()

    def reset(self, batch: int, capacity: int) -> None:
        super().reset(batch, capacity)
        self._cache = {}
        self._request.reset_state()
        self._past = np.zeros(1, np.int64)
        self._bind("past", self._past)
        self._bind("rows", np.arange(batch, dtype=np.int32))

    def memory(self) -> dict[str, int]:
        """`kv_bytes` is what the positions spoken so far need; what OpenVINO set aside for more it does not tell."""
        position = 2 * self.layers * self.heads * self.head_dim * self._cache_item
        sizes = {**PortableGpt.memory(self), **OpenVinoStage.memory(self)}
        sizes |= {
            "weights_bytes": PortableGpt.memory(self)["weights_bytes"],
            "kv_row_position_bytes": position,
        }
        kv = self._batch * self._length * position
        return {**sizes, "kv_bytes": kv} if kv else sizes

    def _repack(self) -> None:
        """One pass over a token: products repack their weights on their first, and no utterance should wait for it."""
        self.reset(1, 1)
        self._padding = np.zeros(1, np.int64)
        self._pass(np.zeros((1, 1, self._codes.shape[1]), np.float32))
        self.reset(1, 1)

    def _infer(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Arrays are bound once and written anew: in a small voice handing them over takes a sixth of a step."""
        if self._length == 0:
            self._bind("padding", feeds["padding"])
        self._past[0] = self._length
        embeddings, bound = feeds["embeddings"], self._bound.get("embeddings")
        if bound is not None and bound.shape == embeddings.shape:
            bound[:] = embeddings
        else:
            self._bind("embeddings", embeddings)
        made = self._request.infer({}, share_inputs=True, share_outputs=True)
        return {name: made[name].copy() for name in ("logits", "hidden")}

    def _bind(self, name: str, array: NDArray[Any]) -> None:
        """Let an input read the array's own memory, which is kept as long as it is bound."""
        from openvino import Tensor

        self._bound[name] = array
        self._request.set_tensor(name, Tensor(array, shared_memory=True))
