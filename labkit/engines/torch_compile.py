"""Engine `torch-compile`: the voice's own modules through TorchInductor, on a CPU or a CUDA device.

It knows what is compiled: the GPT's decode step as one graph whose length is a symbol, so that no step recompiles it,
and the decoder and the vocoder with a symbolic length each. The prompt is read by the eager modules: once an utterance
it has another shape. Compiling happens while loading and is reported apart (`compile_s`); a batch of more than one row
has a graph of its own, compiled when the first such batch is stepped and counted as a recompilation.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from labkit.engines.base import Artifact, Availability, Unavailable
from labkit.engines.torch_engine import TorchEngine
from labkit.model.config import VoiceConfig

if TYPE_CHECKING:
    from labkit.engines.compiled_stages import CompiledGpt, CompiledNetwork
    from labkit.model.gpt import Gpt
    from labkit.spec import Option, StageName

_LENGTH = 11  # steps of the arrays that decoder and vocoder are compiled on


class TorchCompileEngine(TorchEngine):
    """See the module docstring. Precisions and artifacts are those of the torch engine."""

    name = "torch-compile"
    run_options: Mapping[str, tuple[Option, ...]] = {"mode": ("default", "max-autotune")}

    def availability(self, device: str) -> Availability:
        answer = super().availability(device)
        if isinstance(answer, Unavailable):
            return answer
        if device == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            return Unavailable(
                "TorchInductor needs a C++ compiler, and none is on the PATH.",
                "Install one (apt install g++), or use the torch engine.",
            )
        if device != "cpu" and importlib.util.find_spec("triton") is None:
            return Unavailable(
                "TorchInductor needs triton on a GPU, and it is not installed.",
                "Install a CUDA build of torch, which brings it.",
            )
        return answer

    def load(
        self, stage: StageName, artifact: Artifact, *, device: str, threads: int, audio_path: str
    ) -> CompiledGpt | CompiledNetwork:
        network = self.load_module(stage, artifact, device=device, threads=threads, audio_path=audio_path)
        from labkit.engines.compiled_stages import CompiledGpt, CompiledNetwork

        mode = str(artifact.choice.options.get("mode", self.run_options["mode"][0]))
        if stage == "gpt":
            return CompiledGpt(cast("Gpt", network), artifact.details["speaker_token"], mode)
        return CompiledNetwork(network, _example(stage, audio_path, artifact.voice_folder), mode)


def _example(stage: StageName, audio_path: str, voice: Path) -> NDArray[Any]:
    """An input of the stage, of some length that is no special case."""
    config = VoiceConfig.from_folder(voice)
    if stage == "vocoder":
        return np.zeros((1, config.audio.n_mels, 2 * _LENGTH), np.float32)
    if audio_path == "codes":
        return np.zeros((1, _LENGTH, config.gpt.num_codebooks), np.int64)
    return np.zeros((1, _LENGTH, config.gpt.hidden), np.float32)
