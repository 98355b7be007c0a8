"""Engine `torch`: the voice's own modules, eager, on a CPU or a CUDA device.

It knows how a precision is laid over the modules and how arrays cross the stage border. The lower precisions keep
in float32 what is cheap and where rounding is heard or sampled: the code heads, the last mel convolution, the
vocoder's magnitude, phase and inverse STFT. Loading sets torch's thread count, which is global to the process.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Mapping
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
from labkit.errors import SpecError, UnavailableError
from labkit.spec import Option, StageName

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from labkit.model.gpt import Gpt, KvCache

_UNVERIFIED = "torch on cuda is not yet verified on a GPU"
_PRECISIONS = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "bf16", "fp16")}
_KEPT_FLOAT32: dict[StageName, tuple[str, ...]] = {
    "gpt": ("code_head",),
    "decoder": ("vq_layer", "out_conv", "coef"),
    "vocoder": ("final_norm", "out", "istft"),
}


class TorchEngine:
    """See the module docstring. Its artifacts are the voice's own files."""

    name = "torch"
    run_options: Mapping[str, tuple[Option, ...]] = {}

    def availability(self, device: str) -> Availability:
        if importlib.util.find_spec("torch") is None:
            return Unavailable("torch is not installed.", "Install it: pip install torch.")
        kind = _device_kind(device)
        if kind == "cpu":
            return Available()
        if kind != "cuda":
            return Unavailable(f"the torch engine has no device {device!r}.", "Use cpu or cuda[:N].")
        import torch

        if not torch.cuda.is_available():
            return Unavailable(
                f"torch {torch.__version__} sees no CUDA device.",
                "Use device cpu, or a machine with an NVIDIA driver and a CUDA build of torch.",
            )
        index = torch.device(device).index or 0
        if index >= torch.cuda.device_count():
            return Unavailable(
                f"device {device!r} does not exist.", f"Use cuda:0 to cuda:{torch.cuda.device_count() - 1}."
            )
        return Available(note=_UNVERIFIED)

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        """fp16 is for CUDA alone."""
        return _PRECISIONS.get(_device_kind(device or "cuda"), ())

    def default_precision(self, stage: StageName) -> str:
        return "fp32"

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> TorchGpt | TorchNetwork:
        answer = self.availability(device)
        if isinstance(answer, Unavailable):
            raise UnavailableError(f"engine 'torch' on {device!r}: {answer.reason}", answer.remedy)
        precision, known = artifact.choice.precision, self.precisions(stage, device)
        if precision not in known:
            raise SpecError(
                f"engine 'torch' cannot run stage {stage!r} in {precision} on {device}; "
                f"precisions there: {', '.join(known)}."
            )
        import torch

        torch.set_num_threads(threads)
        network = _load_network(stage, artifact.folder, audio_path)
        _lay_precision(network, precision, _KEPT_FLOAT32[stage])
        network = network.eval().requires_grad_(False).to(torch.device(device))
        if stage == "gpt":
            return TorchGpt(network, speaker_token=artifact.details["speaker_token"])  # type: ignore[arg-type]
        return TorchNetwork(network)


class _TorchStage:
    """What the three stages share: where the module is, what it holds, and waiting for the device."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.device = next(network.parameters()).device

    def synchronize(self) -> None:
        if self.device.type == "cuda":
            import torch

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


class TorchGpt(_TorchStage):
    """`GptStage` over `labkit.model.gpt.Gpt`."""

    network: Gpt

    def __init__(self, network: Gpt, speaker_token: int) -> None:
        super().__init__(network)
        self.speaker_token = speaker_token
        self._cache: KvCache | None = None
        self._shape = (0, 0)

    def reset(self, batch: int, capacity: int) -> None:
        if self._cache is None or self._shape != (batch, capacity):
            self._cache, self._shape = (
                None,
                (batch, capacity),
            )  # the old cache is freed before the new one is made
            self._cache = self.network.new_cache(batch, capacity)
        self._cache.length = 0

    def prefill(self, ids: IntArray, mask: BoolArray, speaker: FloatArray | None) -> StepOutput:
        import torch

        with torch.inference_mode():
            tokens = self._put(ids)
            embeddings = self.network.embed_text(tokens)
            if speaker is not None:
                spoken = self._put(speaker).to(embeddings.dtype)[:, None]
                embeddings = torch.where((tokens == self.speaker_token)[..., None], spoken, embeddings)
            return self._read(self.network.prefill(embeddings, self._put(mask), self._kv()))

    def step(self, codes: IntArray) -> StepOutput:
        import torch

        with torch.inference_mode():
            return self._read(self.network.step(self._put(codes), self._kv()))

    def step_text(self, ids: IntArray) -> StepOutput:
        import torch

        with torch.inference_mode():
            return self._read(self.network.step_text(self._put(ids), self._kv()))

    def memory(self) -> dict[str, int]:
        """`step_weights_bytes`: weights that one decode step reads; `kv_row_position_bytes`: of one position of a row."""
        network = self.network
        step = _nbytes(network.layers) + _nbytes(network.norm) + _nbytes(network.code_head)
        step += network.config.num_codebooks * network.config.hidden * network.code_embedding.weight.itemsize
        position = 2 * network.config.layers * network.config.hidden * network.norm.weight.itemsize
        sizes = {**super().memory(), "step_weights_bytes": step, "kv_row_position_bytes": position}
        return sizes if self._cache is None else {**sizes, "kv_bytes": self._cache.nbytes()}

    def close(self) -> None:
        self._cache = None
        super().close()

    def _kv(self) -> KvCache:
        if self._cache is None:
            raise RuntimeError("GptStage: call reset(batch, capacity) before prefill or step")
        return self._cache

    def _put(self, array: NDArray[Any]) -> Tensor:
        return _tensor(array).to(self.device)

    def _read(self, hidden: Tensor) -> StepOutput:
        return StepOutput(_host(self.network.code_logits(hidden)), _host(hidden))


class TorchNetwork(_TorchStage):
    """`DecoderStage` or `VocoderStage`: one array in, one float32 array out."""

    def __call__(self, features: NDArray[Any]) -> FloatArray:
        import torch

        with torch.inference_mode():
            return _host(self.network(_tensor(features).to(self.device)))


def _device_kind(device: str) -> str:
    return device.split(":")[0]


def _load_network(stage: StageName, folder: Path, audio_path: str) -> nn.Module:
    from labkit.model import checkpoint

    if stage == "gpt":
        network = checkpoint.load_gpt(folder)
        del network.text_head  # the refine stage reads its logits from the host's embeddings file
        return network
    if stage == "vocoder":
        return checkpoint.load_vocoder(folder)
    if audio_path == "hidden":
        return checkpoint.load_decoder(folder)
    network = checkpoint.load_dvae(folder)
    del network.encoder, network.downsample_conv  # speaking needs the decoding half alone
    return network


def _lay_precision(network: nn.Module, precision: str, kept: tuple[str, ...]) -> None:
    """Convert the network in place, except its `kept` parts; each part is fed in its own type."""
    if precision == "fp32":
        return
    import torch

    low = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    for name, child in network.named_children():
        dtype = torch.float32 if name in kept else low
        child.to(dtype).register_forward_pre_hook(_cast_to(dtype))
    for name, buffer in network.named_buffers(recurse=False):
        if buffer.is_floating_point() and name not in kept:
            setattr(network, name, buffer.to(low))


def _cast_to(dtype: torch.dtype) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    def cast(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(each.to(dtype) if each.is_floating_point() else each for each in args)

    return cast


def _nbytes(module: nn.Module) -> int:
    return sum(weight.nbytes for weight in module.parameters())


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(array))


def _host(tensor: Tensor) -> FloatArray:
    """A float32 copy on the host."""
    result: FloatArray = tensor.float().cpu().numpy()
    return result
