from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from labkit.engines.base import Artifact, Unavailable
from labkit.engines.torch_compile import TorchCompileEngine
from labkit.engines.torch_engine import TorchEngine
from labkit.spec import StageChoice, StageName
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

SPEAKER_TOKEN = 7


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    """Graphs of networks of equal shapes are shared within a process."""
    torch.compiler.reset()


def load(voice: Voice, stage: StageName, engine: type[TorchEngine], precision: str = "fp32"):
    artifact = Artifact(
        stage=stage, choice=StageChoice(engine=engine.name, precision=precision), folder=voice.folder, files=(),
        size_bytes=0, build_s=0.0, cached=False, content_hash="", voice_folder=voice.folder,
        details={"speaker_token": SPEAKER_TOKEN},
    )  # fmt: skip
    return engine().load(stage, artifact, device="cpu", threads=1, audio_path="hidden")


def test_one_graph_takes_every_step_as_torch_does(tiny_voice: Voice) -> None:
    compiled, eager = (load(tiny_voice, "gpt", engine) for engine in (TorchCompileEngine, TorchEngine))
    compile_s = compiled.figures()["compile_s"]
    assert compile_s > 0
    for length in (1, 2, 40):
        ids, mask = prompts((length,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
        fed = codes(6, 1)
        outputs = [drive(stage, ids, mask, None, fed) for stage in (compiled, eager)]
        assert largest_difference(*outputs) < 2e-5
    assert compiled.figures() == {"compile_s": compile_s, "recompiles": 0}
    compiled.reset(1, 9)
    compiled.prefill(ids[:, :8], mask[:, :8], None)
    compiled.step(fed[0])
    with pytest.raises(ValueError, match="capacity 9"):
        compiled.step(fed[1])


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-5), ("bf16", 0.2)])
def test_a_mixed_batch_is_one_more_graph(tiny_voice: Voice, precision: str, tolerance: float) -> None:
    compiled, eager = (
        load(tiny_voice, "gpt", engine, precision) for engine in (TorchCompileEngine, TorchEngine)
    )
    for lengths in ((3, 11, 1), (5, 2)):
        ids, mask = prompts(lengths, tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
        outputs = [drive(stage, ids, mask, None, codes(4, len(lengths))) for stage in (compiled, eager)]
        assert largest_difference(*outputs) < tolerance
    assert compiled.figures()["recompiles"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["decoder", "vocoder"])
def test_networks_run_at_any_length(tiny_voice: Voice, stage: StageName) -> None:
    compiled, eager = (load(tiny_voice, stage, engine) for engine in (TorchCompileEngine, TorchEngine))
    width = tiny_voice.config.gpt.hidden
    for batch, steps in ((1, 5), (2, 40)):
        shape = (batch, steps, width) if stage == "decoder" else (batch, 100, 2 * steps)
        given = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(compiled(given), eager(given), atol=1e-4)


def test_without_a_compiler_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    answer = TorchCompileEngine().availability("cpu")
    assert isinstance(answer, Unavailable)
    assert "g++" in answer.remedy
