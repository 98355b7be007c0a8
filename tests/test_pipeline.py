from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.errors import LabError, SpecError, UnavailableError
from labkit.pipeline import check_runnable, open_pipeline
from labkit.spec import Recipe, StageChoice, default_recipes
from labkit.voices import Voice


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))


@pytest.mark.parametrize("audio_path", ["hidden", "codes"])
def test_an_open_pipeline_speaks_through_both_audio_paths(tiny_voice: Voice, audio_path: str) -> None:
    lines: list[str] = []
    with open_pipeline(
        Recipe(name="plain"), tiny_voice, audio_path=audio_path, progress=lines.append
    ) as pipeline:
        pipeline.gpt.reset(1, 8)
        output = pipeline.gpt.prefill(np.array([[5, 6]]), np.ones((1, 2), bool), None)
        features = output.hidden[None] if audio_path == "hidden" else np.ones((1, 1, 4), np.int64)
        audio = pipeline.vocoder(pipeline.decoder(features))
        assert audio.shape == (1, 256)
        assert pipeline.placement().keys() == pipeline.memory().keys() == {"gpt", "decoder", "vocoder"}
        assert pipeline.memory()["gpt"]["kv_bytes"] > 0
        assert pipeline.build_s == 0
        assert pipeline.load_s == sum(pipeline.load_stage_s.values()) > 0
        assert [line.split()[1] for line in lines] == ["gpt", "decoder", "vocoder"]


def test_stages_of_different_engines_fit_together(tiny_voice: Voice) -> None:
    recipe = Recipe(
        name="mixed", decoder=StageChoice(engine="ort-cpu"), vocoder=StageChoice(precision="bf16")
    )
    with open_pipeline(recipe, tiny_voice) as pipeline:
        assert pipeline.build_s > 0
        assert "CPUExecutionProvider" in pipeline.placement()["decoder"]
        hidden = np.ones((1, 3, 48), np.float32)
        assert pipeline.vocoder(pipeline.decoder(hidden)).shape == (1, 5 * 256)


def test_what_cannot_run_is_refused_before_any_work(tiny_voice: Voice, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"'ort-cpu' on 'cuda'"):
        open_pipeline(default_recipes()["ort-fp32"], tiny_voice, device="cuda")
    with pytest.raises(SpecError, match="fp16 on cpu"):
        open_pipeline(Recipe(name="half", vocoder=StageChoice(precision="fp16")), tiny_voice)
    with pytest.raises(SpecError, match="whole pipeline"):
        open_pipeline(default_recipes()["upstream"], tiny_voice)
    assert not (tmp_path / "artifacts").exists()


def test_notes_tell_what_is_unverified(monkeypatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert check_runnable(Recipe(name="plain"), "cpu") == ()
    assert check_runnable(Recipe(name="plain"), "cuda") == ("torch on cuda is not yet verified on a GPU",)


def test_stages_that_were_loaded_are_closed_when_a_later_one_fails(tiny_voice: Voice, monkeypatch) -> None:
    from labkit.engines.torch_engine import TorchEngine
    from labkit.engines.torch_stages import TorchGpt

    closed, load = [], TorchEngine.load
    monkeypatch.setattr(TorchGpt, "close", lambda self: closed.append("gpt"))

    def fail_on_the_vocoder(self, stage, artifact, **options):
        if stage == "vocoder":
            raise LabError("no vocoder today")
        return load(self, stage, artifact, **options)

    monkeypatch.setattr(TorchEngine, "load", fail_on_the_vocoder)
    with pytest.raises(LabError, match="no vocoder today"):
        open_pipeline(Recipe(name="plain"), tiny_voice)
    assert closed == ["gpt"]


def test_stages_that_compile_themselves_tell_what_it_cost(tiny_voice: Voice, monkeypatch) -> None:
    """Compiling is not loading: its seconds are told apart."""
    from labkit.engines.torch_engine import TorchEngine
    from labkit.engines.torch_stages import TorchGpt

    load = TorchEngine.load

    def load_and_compile(self, stage, artifact, **where):
        loaded = load(self, stage, artifact, **where)
        if isinstance(loaded, TorchGpt):
            loaded.figures = lambda: {"compile_s": 100.0, "recompiles": 2}
        return loaded

    monkeypatch.setattr(TorchEngine, "load", load_and_compile)
    with open_pipeline(Recipe(name="plain"), tiny_voice) as pipeline:
        assert pipeline.figures() == {"gpt_compile_s": 100.0, "gpt_recompiles": 2}
        assert pipeline.load_stage_s["gpt"] < -90  # the hundred seconds were never waited for
