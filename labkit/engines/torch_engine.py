"""Engine `torch`: the voice's own modules, eager, on a CPU or a CUDA device.

It knows how a precision is laid over the modules. The lower precisions keep in float32 what is cheap and where
rounding is heard or sampled: the code heads, the last mel convolution, the vocoder's magnitude, phase and inverse STFT.
Loading sets torch's thread count and forbids TF32: both are global to the process.

The options `round_blocks` and `round_bits` damage a stage on purpose, so that gates and judges can be tested: the
weights of one block, or of all, are rounded to that many bits. They make nothing smaller or faster.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from labkit.engines.base import Artifact, Availability, Available, Unavailable
from labkit.errors import SpecError, UnavailableError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from labkit.engines.torch_stages import TorchGpt, TorchNetwork
    from labkit.model.gpt import Gpt
    from labkit.model.vocoder import Vocoder
    from labkit.spec import Option, StageName

_UNVERIFIED = "torch on cuda is not yet verified on a GPU"
_PRECISIONS = {"cpu": ("fp32", "bf16"), "cuda": ("fp32", "bf16", "fp16")}
_MOST_BLOCKS = 32  # more than any stage has; a number above a network's last block is refused with the voice
_KEPT_FLOAT32: dict[StageName, tuple[str, ...]] = {
    "gpt": ("code_head",),
    "decoder": ("vq_layer", "out_conv", "coef"),
    "vocoder": ("final_norm", "out", "istft"),
}


class TorchEngine:
    """See the module docstring. Its artifacts are the voice's own files."""

    name = "torch"
    run_options: Mapping[str, tuple[Option, ...]] = {
        "cuda_graph": (False, True),
        "istft": ("product", "numpy"),  # the vocoder's last part: a matrix product, or NumPy's fast transform
        "round_bits": (0, 8, 7, 6, 5, 4, 3, 2),  # 0 rounds nothing
        "round_blocks": ("all", *map(str, range(_MOST_BLOCKS))),
    }

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

    def check_options(
        self,
        stage: StageName,
        options: Mapping[str, Option],
        device: str | None = None,
        blocks: int | None = None,
    ) -> None:
        """SpecError for what only another stage or device can do, and for a block that is not there."""
        asked = {"cuda_graph": bool(options.get("cuda_graph")), "istft": options.get("istft") == "numpy"}
        for name, its_stage in (("cuda_graph", "gpt"), ("istft", "vocoder")):
            if asked[name] and stage != its_stage:
                raise SpecError(
                    f"option {name!r} is for stage {its_stage!r}, not for stage {stage!r}; leave it out there."
                )
        which = str(options.get("round_blocks", "all"))
        if blocks is not None and which != "all" and int(which) >= blocks:
            raise SpecError(
                f"option 'round_blocks' cannot be {which!r}: the {stage} of this voice has "
                f"the blocks 0 to {blocks - 1}."
            )
        if asked["cuda_graph"] and _device_kind(device or "cuda") != "cuda":
            raise SpecError(
                f"option 'cuda_graph' is for stage 'gpt' on a CUDA device, not for {device}; leave it out."
            )

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> TorchGpt | TorchNetwork:
        self.check_options(stage, artifact.choice.options, device)
        recorded = bool(artifact.choice.options.get("cuda_graph", False))
        on_host = artifact.choice.options.get("istft") == "numpy"
        network = self.load_module(stage, artifact, device=device, threads=threads, audio_path=audio_path)
        if recorded:
            from labkit.engines.graph_stages import GraphGpt

            return GraphGpt(cast("Gpt", network), speaker_token=artifact.details["speaker_token"])
        from labkit.engines.torch_stages import TorchGpt, TorchNetwork, TorchSpectrum

        if stage == "gpt":
            return TorchGpt(cast("Gpt", network), speaker_token=artifact.details["speaker_token"])
        return TorchSpectrum(cast("Vocoder", network)) if on_host else TorchNetwork(network)

    def load_module(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> nn.Module:
        """The stage's network on its device, in the artifact's precision; refuses what cannot run there."""
        answer = self.availability(device)
        if isinstance(answer, Unavailable):
            raise UnavailableError(f"engine {self.name!r} on {device!r}: {answer.reason}", answer.remedy)
        precision, known = artifact.choice.precision, self.precisions(stage, device)
        if precision not in known:
            raise SpecError(
                f"engine {self.name!r} cannot run stage {stage!r} in {precision} on {device}; "
                f"precisions there: {', '.join(known)}."
            )
        import torch

        torch.set_num_threads(threads)
        torch.backends.cudnn.allow_tf32 = False  # fp32 means fp32: its convolutions would round to 10 bits
        network = _load_network(stage, artifact.folder, audio_path, precision)
        if bits := artifact.choice.options.get("round_bits"):
            from labkit.model.rounding import round_blocks

            round_blocks(network, str(artifact.choice.options.get("round_blocks", "all")), int(bits))
        _lay_precision(network, precision, _KEPT_FLOAT32[stage])
        return network.eval().requires_grad_(False).to(torch.device(device))


def _device_kind(device: str) -> str:
    return device.split(":")[0]


def _load_network(stage: StageName, folder: Path, audio_path: str, precision: str) -> nn.Module:
    from labkit.model import checkpoint

    if stage == "gpt":
        # the column layout that speeds up float32 steps slows down narrower ones
        gpt = checkpoint.load_gpt(folder, decoding_layout=precision == "fp32")
        del gpt.text_head  # the refine stage multiplies it on the host
        return gpt
    if stage == "vocoder":
        return checkpoint.load_vocoder(folder)
    if audio_path == "hidden":
        return checkpoint.load_decoder(folder)
    dvae = checkpoint.load_dvae(folder)
    del dvae.encoder, dvae.downsample_conv  # speaking needs the decoding half alone
    return dvae


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
