"""Decoder, DVAE and vocoder as ONNX graphs of standard operators, batch and time dynamic.

Traced with torch's own exporter. The tracing one is used because these networks have no data-dependent branches: it
needs no further package and takes a second, where the newer one takes ten to twenty.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import torch

from labkit.export.graph import OPSET

if TYPE_CHECKING:
    from torch import Tensor, nn

    from labkit.model.config import VoiceConfig

MODEL_FILE = "network.onnx"
VOCODER_HEAD = "/out/MatMul"
"""The product that gives magnitude and phase."""
_STEPS = 11  # of the traced example; any length above one shows every operator
_TIME_AXIS = {"hidden": 1, "codes": 1, "mel": 2}


def example_input(kind: str, config: VoiceConfig, batch: int, steps: int, seed: int = 0) -> Tensor:
    """Seeded input of a stage: `hidden` [B, T, D], `codes` [B, T, 4] or `mel` [B, 100, 2T]."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "codes":
        shape = (batch, steps, config.gpt.num_codebooks)
        return torch.randint(0, config.gpt.end_code, shape, generator=generator)
    shape = (batch, steps, config.gpt.hidden) if kind == "hidden" else (batch, config.audio.n_mels, 2 * steps)
    scale = 1.0 if kind == "hidden" else 2.0
    return scale * torch.randn(shape, generator=generator)


def export_network(network: nn.Module, kind: str, config: VoiceConfig, folder: Path) -> dict[str, Any]:
    """Trace a network whose input is of `kind` into `folder`; returns what the manifest records."""
    out, out_axis = ("audio", 1) if kind == "mel" else ("mel", 2)
    path = folder / MODEL_FILE
    with warnings.catch_warnings(), torch.no_grad():
        # the exporter announces its successor, and that it kept shape values dynamic
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (example_input(kind, config, batch=2, steps=_STEPS),),
            str(path),
            dynamo=False,
            opset_version=OPSET,
            input_names=[kind],
            output_names=[out],
            dynamic_axes={
                kind: {0: "batch", _TIME_AXIS[kind]: "time"},
                out: {0: "batch", out_axis: "out_time"},
            },
        )
    return {"opset": OPSET, "input": kind, "nodes": len(onnx.load(path).graph.node)}
