"""Stages over the voice's own modules: arrays in, arrays out, whatever device and precision lie between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from labkit.engines.base import BoolArray, FloatArray, IntArray, StepOutput
from labkit.model.istft_numpy import inverse_stft

if TYPE_CHECKING:
    from torch import Tensor, nn

    from labkit.model.gpt import Gpt, KvCache
    from labkit.model.vocoder import Vocoder


_FEW_ROWS = 2
"""Up to here torch's own bfloat16 product beats oneDNN's (measured on 1, 2, 3, 4 and 8 rows of the full size)."""


class TorchStage:
    """What the three stages share: where the module is, what it holds, and waiting for the device."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.device = next(network.parameters()).device

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def memory(self) -> dict[str, int]:
        return {"weights_bytes": _nbytes(self.network)}

    def placement(self) -> dict[str, int]:
        """How many modules with weights of their own lie on each device."""
        modules = [list(module.parameters(recurse=False)) for module in self.network.modules()]
        return dict(Counter(str(own[0].device) for own in modules if own))

    def close(self) -> None:
        """Let go of the weights."""
        del self.network


class TorchGpt(TorchStage):
    """`GptStage` over `labkit.model.gpt.Gpt`."""

    network: Gpt

    def __init__(self, network: Gpt, speaker_token: int) -> None:
        super().__init__(network)
        self.speaker_token = speaker_token
        self._cache: KvCache | None = None
        self._shape = (0, 0)

    def reset(self, batch: int, capacity: int) -> None:
        if self._cache is None or self._shape != (batch, capacity):
            self._cache = None  # the old cache is freed before the new one is made
            self._cache, self._shape = self.network.new_cache(batch, capacity), (batch, capacity)
        self._cache.length = 0

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        with torch.inference_mode():
            tokens = self.put(ids)
            embeddings = self.network.embed_text(tokens)
            if speaker is not None:
                spoken = self.put(speaker).to(embeddings.dtype)[:, None]
                embeddings = torch.where((tokens == self.speaker_token)[..., None], spoken, embeddings)
            return self._read(self.network.prefill(embeddings, self.put(mask), self.kv()))

    def step(self, codes: IntArray) -> StepOutput:
        logits, hidden = self.advance(self.put(codes))
        return StepOutput(host(logits), host(hidden))

    def advance(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """`step` from the device to the device, without waiting for it.

        codes: [B, 4] -> logits [B, 4, V] and hidden [B, D], which may be overwritten by the next step.
        """
        with torch.inference_mode(), self.fast_products():
            hidden = self.network.step(codes, self.kv())
            return self.network.code_logits(hidden), hidden

    def step_text(self, ids: IntArray) -> StepOutput:
        with torch.inference_mode(), self.fast_products():
            return self._read(self.network.step_text(self.put(ids), self.kv()))

    def memory(self) -> dict[str, int]:
        """With `step_weights_bytes`, read by one decode step, and `kv_row_position_bytes`, one position of one row."""
        network = self.network
        step = _nbytes(network.layers) + _nbytes(network.norm) + _nbytes(network.code_head)
        step += network.config.num_codebooks * network.config.hidden * network.code_embedding.weight.itemsize
        position = 2 * network.config.layers * network.config.hidden * network.norm.weight.itemsize
        sizes = {**super().memory(), "step_weights_bytes": step, "kv_row_position_bytes": position}
        return sizes if self._cache is None else {**sizes, "kv_bytes": self._cache.nbytes()}

    def close(self) -> None:
        self._cache = None
        super().close()

    def kv(self) -> KvCache:
        if self._cache is None:
            raise RuntimeError("GptStage: call reset(batch, capacity) before prefill or step")
        return self._cache

    def fast_products(self) -> AbstractContextManager[None]:
        """How to multiply one token per row: oneDNN's bfloat16 reads a matrix at half the memory's bandwidth then."""
        on_cpu = self.device.type == "cpu" and self.network.norm.weight.dtype == torch.bfloat16
        return _without_onednn() if on_cpu and self._shape[0] <= _FEW_ROWS else nullcontext()

    def put(self, array: NDArray[Any]) -> Tensor:
        return tensor_of(array).to(self.device)

    def _read(self, hidden: Tensor) -> StepOutput:
        return StepOutput(host(self.network.code_logits(hidden)), host(hidden))


class TorchNetwork(TorchStage):
    """`DecoderStage` or `VocoderStage`: one array in, one float32 array out."""

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        with torch.inference_mode():
            return host(self.network(tensor_of(features).to(self.device)))


class TorchSpectrum(TorchNetwork):
    """`VocoderStage` whose network stops at the spectrum; the inverse transform is NumPy's, in float32."""

    network: Vocoder

    def __init__(self, network: Vocoder) -> None:
        super().__init__(network)
        self._hop = network.istft.hop
        del network.istft

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        with torch.inference_mode():
            real, imag = self.network.spectrum(tensor_of(features).to(self.device))
            return inverse_stft(host(real), host(imag), self._hop)


@contextmanager
def _without_onednn() -> Iterator[None]:
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]  # torch types the setter as its descriptor
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _nbytes(module: nn.Module) -> int:
    return sum(weight.nbytes for weight in module.parameters())


def tensor_of(array: NDArray[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def host(tensor: Tensor) -> FloatArray:
    """A float32 copy on the host."""
    result: FloatArray = tensor.float().cpu().numpy()
    return result
