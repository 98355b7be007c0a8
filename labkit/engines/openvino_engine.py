"""Engine `openvino`: models on OpenVINO's plugin for CPUs.

It knows which stage runs in which precision and what the plugin is told; the stages are `openvino_stages`'. It never
imports torch.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labkit.engines.base import Artifact, Availability, Available, Unavailable
from labkit.engines.huge_pages import collapse, filled_regions
from labkit.engines.openvino_stages import OpenVinoGpt, OpenVinoNetwork
from labkit.errors import ArtifactError, UnavailableError
from labkit.spec import Option, StageName

if TYPE_CHECKING:
    from openvino import CompiledModel

_PRECISIONS: dict[StageName, tuple[str, ...]] = {
    "gpt": ("fp32", "bf16", "int8-weight", "int4-weight"),
    "decoder": ("fp32", "bf16"),
    "vocoder": ("fp32",),
}
_MODELS = (".xml", ".onnx")


class OpenVinoEngine:
    """See the module docstring."""

    name = "openvino"
    run_options: Mapping[str, tuple[Option, ...]] = {"huge_pages": (True, False)}

    def availability(self, device: str) -> Availability:
        if importlib.util.find_spec("openvino") is None:
            return Unavailable("openvino is not installed.", "Install it: pip install 'labkit[openvino]'.")
        if device != "cpu":
            return Unavailable(f"the openvino engine has no device {device!r}.", "Use device cpu.")
        return Available()

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        return _PRECISIONS[stage]

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> OpenVinoGpt | OpenVinoNetwork:
        answer = self.availability(device)
        if isinstance(answer, Unavailable):
            raise UnavailableError(f"engine 'openvino' on {device!r}: {answer.reason}", answer.remedy)
        held = filled_regions()
        half = artifact.choice.precision == "bf16"
        compiled = _compile(artifact, threads, half)
        weights = sum((artifact.folder / name).stat().st_size for name in artifact.files)
        loaded: OpenVinoGpt | OpenVinoNetwork = (
            OpenVinoGpt(compiled, artifact, weights, cache_item=2 if half else 4)
            if stage == "gpt"
            else OpenVinoNetwork(compiled, weights, artifact.details.get("hop"))
        )
        if artifact.choice.options.get("huge_pages", True):
            loaded.huge_page_bytes = collapse(held)
        return loaded


def _compile(artifact: Artifact, threads: int, half: bool) -> CompiledModel:
    """Compile an artifact's model for the CPU, or raise when the plugin would run it otherwise than asked."""
    import openvino

    model = next((name for name in artifact.files if name.endswith(_MODELS)), None)
    if model is None:
        raise ArtifactError(f"artifact {artifact.folder} has no model; delete the folder to rebuild it.")
    precision = "bf16" if half else "f32"
    settings: dict[str, Any] = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,  # the process's own affinity holds; pinned threads would leave it
        "INFERENCE_PRECISION_HINT": precision,
        "KV_CACHE_PRECISION": precision,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": int(artifact.details.get("activation_block", 0)),
    }
    compiled = openvino.Core().compile_model(artifact.folder / model, "CPU", settings)
    got = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
    if got != precision:
        raise UnavailableError(
            f"OpenVINO compiled {model} for {got} where {precision} was asked for: this processor has no {precision}.",
            "Choose fp32.",
        )
    return compiled
