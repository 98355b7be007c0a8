"""Recipes made and driven: what their GPT and decoder lose on recorded sentences, what they weigh, how fast they step.

Every sentence is fed to every recipe before the next one (teacher-forced, batch 1), and ONNX Runtime in fp32 runs among
them: the CPU time of a step is told as a share of its, so that a busy machine spoils no comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from labkit.artifacts import prepare
from labkit.engines.base import DecoderStage, FloatArray, GptStage, get_engine
from labkit.sensitivity.comparing import GptComparison, code_figures, mean_figures, mel_distance
from labkit.sensitivity.measuring import comparison_of
from labkit.spec import Recipe, StageChoice

if TYPE_CHECKING:
    from labkit.calibration import CalibrationSet, Recording
    from labkit.sensitivity.comparing import Row

BYTES_PER_MB = 1e6
EXACT = "fp32"
"""The name under which ONNX Runtime in fp32 is measured with every group of recipes."""


@dataclass(frozen=True)
class Trial:
    """What a recipe was measured to be. gpt_bytes, size_bytes: artifacts of the GPT, and of all three stages.

    step: CPU time of a decode step as a share of fp32's, median over sentences; kl, top1, hidden_error and mel_db as in
    `labkit.sensitivity`, mel_db through the recipe's own decoder.
    """

    gpt_bytes: int
    size_bytes: int
    step: float
    kl: float
    top1: float
    hidden_error: float
    mel_db: float

    def figures(self) -> dict[str, float]:
        """By the names of a budget."""
        size = self.size_bytes / BYTES_PER_MB
        return {"kl": self.kl, "mel": self.mel_db, "size": size, "step": self.step}

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def exact_recipe() -> Recipe:
    """Every stage in ONNX Runtime, fp32."""
    choice = StageChoice(engine="ort-cpu", precision="fp32")
    return Recipe(name=EXACT, gpt=choice, decoder=choice, vocoder=choice)


def try_recipes(
    recipes: Mapping[str, Recipe], recorded: CalibrationSet, progress: Callable[[str], None]
) -> dict[str, Trial]:
    """Make, load and measure recipes of one voice together; `EXACT` is among the answers."""
    comparison = comparison_of("gpt", recorded)
    assert isinstance(comparison, GptComparison)
    stages: dict[str, _Stages] = {}
    try:
        for name, recipe in {EXACT: exact_recipe(), **recipes}.items():
            progress(f"making {name}")
            stages[name] = _load(recipe, recorded, progress)
        progress(f"measuring {', '.join(recipes)} on {len(comparison.wanted)} sentences")
        rows, seconds = _drive_all(stages, recorded, comparison)
    finally:
        for each in stages.values():
            each.gpt.close()
            each.decoder.close()
    return {
        name: _trial(stages[name], rows[name], np.array(seconds[name]) / np.array(seconds[EXACT]))
        for name in stages
    }


@dataclass(frozen=True)
class _Stages:
    gpt: GptStage
    decoder: DecoderStage
    gpt_bytes: int
    size_bytes: int


def _load(recipe: Recipe, recorded: CalibrationSet, progress: Callable[[str], None]) -> _Stages:
    artifacts = prepare(recipe, recorded.voice, audio_path=recorded.audio_path, progress=progress)
    gpt, decoder = (
        get_engine(artifacts[stage].choice.engine).load(
            stage, artifacts[stage], device="cpu", threads=recorded.threads, audio_path=recorded.audio_path
        )
        for stage in ("gpt", "decoder")
    )
    whole = sum(artifact.size_bytes for artifact in artifacts.values())
    return _Stages(gpt, decoder, artifacts["gpt"].size_bytes, whole)


def _drive_all(
    stages: Mapping[str, _Stages], recorded: CalibrationSet, comparison: GptComparison
) -> tuple[dict[str, list[Row]], dict[str, list[float]]]:
    """Rows of figures, and CPU seconds of a step, for each recipe and sentence."""
    rows: dict[str, list[Row]] = {name: [] for name in stages}
    seconds: dict[str, list[float]] = {name: [] for name in stages}
    speaker = None if recorded.speaker is None else recorded.speaker.normalized()[None]
    for each, wanted in zip(recorded.recordings(), comparison.wanted, strict=True):
        hidden, logits, mel = wanted
        for name, those in stages.items():
            found_logits, found_hidden, spent = _drive(those.gpt, each, speaker)
            figures = code_figures(
                torch.from_numpy(each.codes), logits, hidden,
                torch.from_numpy(found_logits), torch.from_numpy(found_hidden),
            )  # fmt: skip
            assert mel is not None  # recorded on the hidden path
            found_mel = torch.from_numpy(those.decoder(found_hidden[None, :-1]))
            rows[name].append((len(each.codes), {**figures, "mel_db": mel_distance(found_mel, mel)}))
            seconds[name].append(spent)
    return rows, seconds


def _drive(
    gpt: GptStage, recording: Recording, speaker: FloatArray | None
) -> tuple[FloatArray, FloatArray, float]:
    """logits [T + 1, 4, 626] and hidden [T + 1, D] of the recorded codes; CPU seconds of one step."""
    ids, codes = recording.ids[None], recording.codes
    gpt.reset(1, ids.shape[1] + len(codes))
    outputs = [gpt.prefill(ids, np.ones(ids.shape, bool), speaker)]
    started = time.process_time()
    outputs += [gpt.step(each[None]) for each in codes]
    spent = time.process_time() - started
    logits, hidden = (
        np.concatenate([getattr(output, name) for output in outputs]) for name in outputs[0]._fields
    )
    return logits, hidden, spent / len(codes)


def _trial(stages: _Stages, rows: list[Row], shares: np.ndarray[Any, Any]) -> Trial:
    mean = mean_figures(rows)
    return Trial(
        gpt_bytes=stages.gpt_bytes, size_bytes=stages.size_bytes, step=float(np.median(shares)), kl=mean["kl"],
        top1=mean["top1"], hidden_error=mean["hidden_error"], mel_db=mean["mel_db"],
    )  # fmt: skip
