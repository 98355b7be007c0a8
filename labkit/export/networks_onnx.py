"""Decoder, DVAE and vocoder as ONNX graphs of standard operators, batch and time dynamic.

The DVAE has a graph for each direction; the vocoder one with its inverse STFT inside and one that stops at the
spectrum, for runtimes that do the transform better themselves (`labkit.model.istft_numpy` does it in NumPy).

Traced with torch's own exporter. The tracing one is used because these networks have no data-dependent branches: it
needs no further package and takes a second, where the newer one takes ten to twenty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import torch
from torch import nn

from labkit.export.graph import DATA_FILE, INLINE_BYTES, OPSET

if TYPE_CHECKING:
    from torch import Tensor

    from labkit.model.config import VoiceConfig

MODEL_FILE = "network.onnx"
VOCODER_HEAD = "/out/MatMul"
"""The product that gives magnitude and phase."""
_STEPS = 11  # of the traced example; any length above one shows every operator


@dataclass(frozen=True)
class Port:
    """What goes into a graph and comes out of it, and which axis of each is time."""

    given: str
    given_time: int
    made: tuple[str, ...]
    made_time: int
    of: Callable[[nn.Module], nn.Module] = lambda network: network
    """The module to trace, made from the loaded network."""


PORTS: dict[str, Port] = {
    "hidden": Port("hidden", 1, ("mel",), 2),
    "codes": Port("codes", 1, ("mel",), 2),
    "mel": Port("mel", 2, ("audio",), 1),
    "mel-spectrum": Port("mel", 2, ("real", "imag"), 2, lambda network: _Part(network, "spectrum")),
    "mel-codes": Port("mel", 2, ("codes",), 1, lambda network: _Part(network, "encode")),
}
"""By kind: decoder, DVAE, vocoder, vocoder up to its spectrum, the DVAE's encoding half."""


class _Part(nn.Module):
    """One method of a network as a module of its own."""

    def __init__(self, network: nn.Module, method: str) -> None:
        super().__init__()
        self.network, self.method = network, method

    def forward(self, given: Tensor) -> Tensor | tuple[Tensor, ...]:
        made: Tensor | tuple[Tensor, ...] = getattr(self.network, self.method)(given)
        return made


def example_input(kind: str, config: VoiceConfig, batch: int, steps: int, seed: int = 0) -> Tensor:
    """Seeded input of a graph: `hidden` [B, T, D], `codes` [B, T, 4] or `mel` [B, 100, 2T]."""
    kind = PORTS[kind].given
    generator = torch.Generator().manual_seed(seed)
    if kind == "codes":
        shape = (batch, steps, config.gpt.num_codebooks)
        return torch.randint(0, config.gpt.end_code, shape, generator=generator)
    shape = (batch, steps, config.gpt.hidden) if kind == "hidden" else (batch, config.audio.n_mels, 2 * steps)
    scale = 1.0 if kind == "hidden" else 2.0
    return scale * torch.randn(shape, generator=generator)


def export_network(network: nn.Module, kind: str, config: VoiceConfig, folder: Path) -> dict[str, Any]:
    """Trace a network, as one of the `PORTS`, into `folder`; returns what the manifest records."""
    port = PORTS[kind]
    path = folder / MODEL_FILE
    with warnings.catch_warnings(), torch.no_grad():
        # the exporter announces its successor, and that it kept shape values dynamic
        warnings.simplefilter("ignore")
        torch.onnx.export(
            port.of(network).eval(),
            (example_input(kind, config, batch=2, steps=_STEPS),),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=[port.given],
            output_names=list(port.made),
            dynamic_axes={
                port.given: {0: "batch", port.given_time: "time"},
                **{name: {0: "batch", port.made_time: "out_time"} for name in port.made},
            },
        )
    graph = onnx.load(path)
    _keep_apart(graph, path)
    details = {"opset": OPSET, "input": port.given, "nodes": len(graph.graph.node)}
    if kind == "mel-spectrum":
        details |= {"n_fft": config.audio.n_fft, "hop": config.audio.hop}
    return details


def _keep_apart(graph: onnx.ModelProto, path: Path) -> None:
    """Write the tensors to a file beside the graph: a runtime that maps it needs no second copy of them to load."""
    path.unlink()
    onnx.save_model(
        graph, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=DATA_FILE,
        size_threshold=INLINE_BYTES,
    )  # fmt: skip
