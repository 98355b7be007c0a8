"""Engine `ort-cpu`: exported graphs on ONNX Runtime's CPU provider.

It knows what a session may be told, and refuses another provider than the one asked for. It never imports torch.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.engines.base import Artifact, Availability, Available, Unavailable
from labkit.engines.huge_pages import collapse, filled_regions
from labkit.engines.ort_stages import OrtGpt, OrtNetwork, OrtPortableGpt
from labkit.errors import ArtifactError, UnavailableError
from labkit.spec import Option, StageName

if TYPE_CHECKING:
    import onnxruntime as ort

PROVIDER = "CPUExecutionProvider"
_PRECISIONS: dict[StageName, tuple[str, ...]] = {
    "gpt": ("fp32", "fp16", "int8-dynamic", "int8-static", "int8-weight", "int4-weight"),
    "decoder": ("fp32", "fp16", "int8-dynamic"),
    "vocoder": ("fp32", "fp16", "int8-dynamic"),
}
_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "disabled": "ORT_DISABLE_ALL",
}


class OrtCpuEngine:
    """See the module docstring."""

    name = "ort-cpu"
    run_options: Mapping[str, tuple[Option, ...]] = {
        "graph_optimization_level": tuple(_LEVELS),
        "arena": (True, False),
        "memory_pattern": (True, False),
        "prepacking": (True, False),
        "spinning": (True, False),
        "huge_pages": (True, False),  # what loading made is put into pages of 2 MB, where Linux can
    }

    def availability(self, device: str) -> Availability:
        if importlib.util.find_spec("onnxruntime") is None:
            return Unavailable("onnxruntime is not installed.", "Install it: pip install 'labkit[cpu]'.")
        if device != "cpu":
            return Unavailable(f"the ort-cpu engine has no device {device!r}.", "Use device cpu.")
        return Available()

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        return _PRECISIONS[stage]

    def default_precision(self, stage: StageName) -> str:
        return "fp32"

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> OrtGpt | OrtPortableGpt | OrtNetwork:
        answer = self.availability(device)
        if isinstance(answer, Unavailable):
            raise UnavailableError(f"engine 'ort-cpu' on {device!r}: {answer.reason}", answer.remedy)
        model = next((name for name in artifact.files if name.endswith(".onnx")), None)
        if model is None:
            raise ArtifactError(
                f"artifact {artifact.folder} has no .onnx file; delete the folder to rebuild it."
            )
        options = {name: values[0] for name, values in self.run_options.items()}
        options |= {name: value for name, value in artifact.choice.options.items() if name in options}
        held = filled_regions()
        session = open_session(artifact.folder / model, threads, options)
        in_huge_pages = collapse(held) if options["huge_pages"] else 0
        weights = sum((artifact.folder / name).stat().st_size for name in artifact.files)
        if stage == "gpt":
            portable = artifact.details.get("graph") == "portable"
            gpt = (OrtPortableGpt if portable else OrtGpt)(session, artifact, weights)
            gpt.huge_page_bytes = in_huge_pages
            return gpt
        network = OrtNetwork(session, weights, artifact.details.get("hop"))
        network.huge_page_bytes = in_huge_pages
        return network


def open_session(model: Path, threads: int, options: Mapping[str, Option]) -> ort.InferenceSession:
    """A session on the CPU provider alone; `options` are the engine's `run_options`, complete."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    settings.graph_optimization_level = getattr(
        ort.GraphOptimizationLevel, _LEVELS[str(options["graph_optimization_level"])]
    )
    settings.enable_cpu_mem_arena = bool(options["arena"])
    settings.enable_mem_pattern = bool(options["memory_pattern"])
    settings.add_session_config_entry("session.disable_prepacking", str(int(not options["prepacking"])))
    settings.add_session_config_entry("session.intra_op.allow_spinning", str(int(bool(options["spinning"]))))
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = ort.InferenceSession(str(model), settings, providers=[PROVIDER])
    if PROVIDER not in session.get_providers():
        raise UnavailableError(
            f"ONNX Runtime opened {model} with {session.get_providers()} and without {PROVIDER}.",
            "Reinstall onnxruntime.",
        )
    return session
