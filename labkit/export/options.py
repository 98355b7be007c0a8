"""What may be chosen about an export, with the values it may take, the default first. Loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.spec import Option

GPT_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "graph": ("ort", "portable"),  # ONNX Runtime's own fused operators, or the standard ones
}
VOCODER_OPTIONS: Mapping[str, tuple[Option, ...]] = {
    "inverse_stft": ("graph", "numpy"),  # inside the graph, or after it: the graph then ends at the spectrum
}
