"""The static step is checked without a GPU, replayed by calling it; recording it needs one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.engines import graph_stages
from labkit.engines.base import Artifact
from labkit.engines.graph_stages import CAPACITY_STEP, GraphGpt, StaticStep
from labkit.engines.torch_engine import TorchEngine, _lay_precision
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import SpecError
from labkit.model.checkpoint import load_gpt
from labkit.spec import StageChoice
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

SPEAKER_TOKEN = 7


def called(step: StaticStep):
    """Stands in for a recording: three warm-up steps, then the step itself at every replay."""
    for _ in range(3):
        step()
    return step


def stages(voice: Voice, precision: str = "fp32") -> tuple[GraphGpt, TorchGpt]:
    network = load_gpt(voice.folder)
    _lay_precision(network, precision, ("code_head",))
    return GraphGpt(network, SPEAKER_TOKEN, called), TorchGpt(network, SPEAKER_TOKEN)


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-5), ("bf16", 0.1), ("fp16", 0.02)])
def test_a_static_step_says_what_the_eager_one_says(
    tiny_voice: Voice, precision: str, tolerance: float
) -> None:
    static, eager = stages(tiny_voice, precision)
    vocabulary = tiny_voice.config.gpt.num_text_tokens
    for lengths in ((6,), (9, 2, 5), (4,)):  # a smaller batch comes back to its own, used cache
        ids, mask = prompts(lengths, vocabulary, SPEAKER_TOKEN)
        fed = codes(7, len(lengths))
        pair = [drive(stage, ids, mask, None, fed) for stage in (static, eager)]
        assert largest_difference(*pair) < tolerance


def test_unwritten_memory_never_reaches_the_result(tiny_voice: Voice, monkeypatch) -> None:
    network = load_gpt(tiny_voice.folder)
    monkeypatch.setattr(torch, "empty", lambda shape, **how: torch.full(shape, float("nan"), **how))
    logits, hidden = StaticStep(network, 1, 32)()
    assert bool(torch.isfinite(logits).all()) and bool(torch.isfinite(hidden).all())


def test_a_graph_serves_every_length_up_to_its_rounded_capacity(tiny_voice: Voice) -> None:
    static, _ = stages(tiny_voice)
    for capacity in (10, 200, CAPACITY_STEP):
        static.reset(1, capacity)
    assert static.figures()["recompiles"] == 0
    assert static.memory()["kv_bytes"] == CAPACITY_STEP * static.memory()["kv_row_position_bytes"]
    static.reset(2, 10)
    assert static.figures()["recompiles"] == 1
    static.reset(1, 10)
    assert static.figures()["recompiles"] == 1


def test_only_the_last_used_graphs_are_kept(tiny_voice: Voice) -> None:
    static, _ = stages(tiny_voice)
    for batch in (1, 2, 3, 4, 1, 5):
        static.reset(batch, 8)
    recorded = static.figures()["recompiles"]
    static.reset(1, 8)  # used again lately, so 2 had to go
    assert static.figures()["recompiles"] == recorded
    static.reset(2, 8)
    assert static.figures()["recompiles"] == recorded + 1


def test_the_capacity_asked_for_is_the_limit(tiny_voice: Voice) -> None:
    static, _ = stages(tiny_voice)
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed = codes(2, 1)
    static.reset(1, 5)
    static.prefill(ids, mask, None)
    static.step(fed[0])
    with pytest.raises(ValueError, match="capacity 5"):
        static.step(fed[1])


def test_text_tokens_and_codes_may_alternate(tiny_voice: Voice) -> None:
    ids, mask = prompts((5, 3), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed, seen = codes(2, 2), []
    for stage in stages(tiny_voice):
        stage.reset(2, 12)
        stage.prefill(ids, mask, None)
        seen.append([stage.step(fed[0]), stage.step_text(np.array([3, 4])), stage.step(fed[1])])
    assert largest_difference(*seen) < 2e-5


@pytest.mark.parametrize(("stage", "device"), [("gpt", "cpu"), ("decoder", "cuda")])
def test_the_option_is_refused_where_it_means_nothing(tiny_voice: Voice, stage, device) -> None:
    artifact = Artifact(
        stage=stage, choice=StageChoice(options={"cuda_graph": True}), folder=tiny_voice.folder, files=(),
        size_bytes=0, build_s=0.0, cached=False, content_hash="", voice_folder=tiny_voice.folder,
    )  # fmt: skip
    with pytest.raises(SpecError, match=r"cuda_graph.*stage 'gpt'.*not for (cpu|stage 'decoder')"):
        TorchEngine().load(stage, artifact, device=device, threads=1, audio_path="hidden")


@pytest.mark.gpu
def test_a_recorded_step_says_what_the_eager_one_says(tiny_voice: Voice) -> None:
    network = load_gpt(tiny_voice.folder).cuda()
    recorded = GraphGpt(network, SPEAKER_TOKEN, graph_stages.record)
    eager = TorchGpt(network, SPEAKER_TOKEN)
    for lengths in ((6,), (9, 2)):
        ids, mask = prompts(lengths, tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
        fed = codes(5, len(lengths))
        pair = [drive(stage, ids, mask, None, fed) for stage in (recorded, eager)]
        assert largest_difference(*pair) < 1e-4
