"""Engine `ort-cpu`: exported graphs on ONNX Runtime's CPU provider.

It knows which stage runs over which graph; what a session may be told is `ort_session`'s. It never imports torch.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from labkit.engines.base import Artifact, Availability, Available, Unavailable
from labkit.engines.huge_pages import collapse, filled_regions
from labkit.engines.ort_session import KNOBS, check_knobs, complete, open_session
from labkit.engines.ort_stages import OrtCopyingGpt, OrtGpt, OrtNetwork, OrtPortableGpt
from labkit.errors import ArtifactError, UnavailableError
from labkit.spec import Option, StageName

_PRECISIONS: dict[StageName, tuple[str, ...]] = {
    "gpt": ("fp32", "fp16", "int8-dynamic", "int8-static", "int8-weight", "int4-weight"),
    "decoder": ("fp32", "fp16", "int8-dynamic"),
    "vocoder": ("fp32", "fp16", "int8-dynamic"),
}


class OrtCpuEngine:
    """See the module docstring."""

    name = "ort-cpu"
    run_options: Mapping[str, tuple[Option, ...]] = KNOBS

    def check_options(
        self,
        stage: StageName,
        options: Mapping[str, Option],
        device: str | None = None,
        blocks: int | None = None,
    ) -> None:
        check_knobs(stage, options)

    def availability(self, device: str) -> Availability:
        if importlib.util.find_spec("onnxruntime") is None:
            return Unavailable("onnxruntime is not installed.", "Install it: pip install 'labkit[cpu]'.")
        if device != "cpu":
            return Unavailable(f"the ort-cpu engine has no device {device!r}.", "Use device cpu.")
        return Available()

    def precisions(self, stage: StageName, device: str | None = None) -> tuple[str, ...]:
        return _PRECISIONS[stage]

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
        knobs = complete(artifact.choice.options)
        held = filled_regions()
        session = open_session(artifact.folder / model, threads, knobs)
        in_huge_pages = collapse(held) if knobs["huge_pages"] else 0
        weights = sum((artifact.folder / name).stat().st_size for name in artifact.files)
        if stage == "gpt":
            portable = artifact.details.get("graph") == "portable"
            bound = OrtGpt if knobs["io_binding"] else OrtCopyingGpt
            gpt = (OrtPortableGpt if portable else bound)(session, artifact, weights)
            gpt.huge_page_bytes = in_huge_pages
            return gpt
        network = OrtNetwork(session, weights, artifact.details.get("hop"))
        network.huge_page_bytes = in_huge_pages
        return network
