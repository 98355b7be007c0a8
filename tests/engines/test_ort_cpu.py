from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labkit.engines.base import Artifact, Unavailable
from labkit.engines.ort_cpu import OrtCpuEngine
from labkit.engines.ort_stages import OrtGpt, OrtNetwork
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import ArtifactError, SpecError
from labkit.export.gpt_onnx import export_gpt
from labkit.export.gpt_portable import export_portable_gpt
from labkit.export.networks_onnx import export_network
from labkit.model.checkpoint import load_gpt, load_vocoder
from labkit.spec import Option, StageChoice, StageName
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

SPEAKER_TOKEN = 7


def artifact(
    stage: StageName, folder: Path, voice: Path, details: dict, options: dict[str, Option] | None = None
) -> Artifact:
    return Artifact(
        stage=stage, choice=StageChoice(engine="ort-cpu", options=options or {}), folder=folder,
        files=tuple(file.name for file in folder.iterdir()), size_bytes=0, build_s=None, cached=True, content_hash="",
        voice_folder=voice, details={"speaker_token": SPEAKER_TOKEN, "step_weights_bytes": 1000, **details},
    )  # fmt: skip


@pytest.fixture(scope="module")
def gpt_artifact(tiny_voice: Voice, tmp_path_factory) -> Artifact:
    folder = tmp_path_factory.mktemp("gpt")
    return artifact("gpt", folder, tiny_voice.folder, export_gpt(load_gpt(tiny_voice.folder), folder))


@pytest.fixture
def stage(gpt_artifact: Artifact) -> OrtGpt:
    return OrtCpuEngine().load("gpt", gpt_artifact, device="cpu", threads=1, audio_path="hidden")


@pytest.fixture(scope="module")
def reference(tiny_voice: Voice) -> TorchGpt:
    return TorchGpt(load_gpt(tiny_voice.folder), SPEAKER_TOKEN)


@pytest.mark.parametrize("lengths", [(1,), (8,), (3, 11, 1, 7), (2, 2)])
def test_speaks_like_torch_whatever_the_lengths_in_a_batch(
    stage, reference, tiny_voice: Voice, lengths
) -> None:
    config = tiny_voice.config.gpt
    ids, mask = prompts(lengths, config.num_text_tokens, SPEAKER_TOKEN)
    speaker = np.random.default_rng(3).standard_normal((len(lengths), config.hidden)).astype(np.float32)
    fed = codes(6, len(lengths))
    for given in (speaker, None):
        mine, wanted = (drive(each, ids, mask, given, fed) for each in (stage, reference))
        assert largest_difference(mine, wanted) < 2e-5


def test_padding_on_every_row_is_only_padding(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((5, 3), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    wider = np.pad(ids, ((0, 0), (4, 0))), np.pad(mask, ((0, 0), (4, 0)))
    fed = codes(3, 2)
    assert largest_difference(drive(stage, ids, mask, None, fed), drive(stage, *wider, None, fed)) == 0


def test_a_used_cache_leaves_no_trace(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed = codes(5, 1)
    first = drive(stage, ids, mask, None, fed)
    drive(stage, ids[:, ::-1].copy(), mask, None, fed[::-1])
    assert largest_difference(first, drive(stage, ids, mask, None, fed)) == 0


def test_text_steps_equal_torch(stage, reference, tiny_voice: Voice) -> None:
    ids, mask = prompts((4, 2), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    outputs = []
    for each in (stage, reference):
        each.reset(2, 10)
        each.prefill(ids, mask, None)
        outputs.append([each.step_text(np.array([5, 9])), each.step_text(np.array([1, 2]))])
    assert largest_difference(*outputs) < 2e-5


def test_outputs_are_copies(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    stage.reset(1, 8)
    first = stage.prefill(ids, mask, None)
    before = first.logits.copy(), first.hidden.copy()
    stage.step(codes(1, 1)[0])
    np.testing.assert_array_equal(first.logits, before[0])
    np.testing.assert_array_equal(first.hidden, before[1])


def test_stepping_beyond_the_capacity_or_the_voice_is_refused(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    stage.reset(1, 5)
    stage.prefill(ids, mask, None)
    stage.step(codes(1, 1)[0])
    with pytest.raises(ValueError, match="capacity 5"):
        stage.step(codes(1, 1)[0])
    with pytest.raises(SpecError, match="256"):
        stage.reset(1, 257)
    with pytest.raises(RuntimeError, match="call reset"):
        stage.step(codes(1, 3)[0])
    with pytest.raises(ValueError, match="no real token"):
        stage.prefill(ids, np.zeros_like(mask), None)


def test_placement_and_memory_say_what_the_session_holds(
    stage, gpt_artifact: Artifact, tiny_voice: Voice
) -> None:
    assert set(stage.placement()) == {"CPUExecutionProvider"}
    assert stage.placement()["CPUExecutionProvider"] > 10 * tiny_voice.config.gpt.layers
    assert "kv_bytes" not in stage.memory()
    stage.reset(2, 30)
    sizes = stage.memory()
    assert sizes["kv_bytes"] == 2 * 30 * sizes["kv_row_position_bytes"]
    gpt = tiny_voice.config.gpt
    tables = 4 * gpt.hidden * (gpt.num_text_tokens + 4 * gpt.num_code_tokens)
    files = sum(file.stat().st_size for file in gpt_artifact.folder.iterdir())
    assert sizes["weights_bytes"] == files + tables
    assert sizes["step_weights_bytes"] == 1000 + 4 * tiny_voice.config.gpt.hidden * 4


def test_session_options_reach_the_session(gpt_artifact: Artifact, tiny_voice: Voice) -> None:
    options: dict[str, Option] = {"graph_optimization_level": "disabled", "arena": False, "memory_pattern": False,
                                  "prepacking": False, "spinning": False}  # fmt: skip
    plain = artifact("gpt", gpt_artifact.folder, tiny_voice.folder, dict(gpt_artifact.details), options)
    stage = OrtCpuEngine().load("gpt", plain, device="cpu", threads=1, audio_path="hidden")
    settings = stage.session.get_session_options()
    assert not settings.enable_cpu_mem_arena
    assert not settings.enable_mem_pattern
    assert settings.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert settings.intra_op_num_threads == 1
    assert settings.get_session_config_entry("session.disable_prepacking") == "1"
    assert settings.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_a_network_runs_and_is_placed(tiny_voice: Voice, tmp_path: Path) -> None:
    export_network(load_vocoder(tiny_voice.folder), "mel", tiny_voice.config, tmp_path)
    stage = OrtCpuEngine().load(
        "vocoder",
        artifact("vocoder", tmp_path, tiny_voice.folder, {}),
        device="cpu",
        threads=1,
        audio_path="hidden",
    )
    assert isinstance(stage, OrtNetwork)
    audio = stage(np.zeros((2, 100, 7)))  # float64 is taken as well
    assert audio.shape == (2, 6 * 256)
    assert audio.dtype == np.float32
    assert set(stage.placement()) == {"CPUExecutionProvider"}


def test_there_is_no_other_device() -> None:
    answer = OrtCpuEngine().availability("cuda")
    assert isinstance(answer, Unavailable)
    assert "cpu" in answer.remedy


def test_an_artifact_without_a_graph_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        OrtCpuEngine().load(
            "gpt", artifact("gpt", tmp_path, tmp_path, {}), device="cpu", threads=1, audio_path="hidden"
        )


def test_speaking_needs_no_torch(gpt_artifact: Artifact) -> None:
    """A fresh process loads and drives the stage; torch must not have been imported by anything on the way."""
    program = f"""
import sys
from pathlib import Path
import numpy as np
from labkit.engines.base import Artifact, get_engine
from labkit.spec import StageChoice
artifact = Artifact("gpt", StageChoice(engine="ort-cpu"), Path({str(gpt_artifact.folder)!r}), {gpt_artifact.files!r},
                    0, None, True, "", Path({str(gpt_artifact.voice_folder)!r}), {dict(gpt_artifact.details)!r})
stage = get_engine("ort-cpu").load("gpt", artifact, device="cpu", threads=1, audio_path="hidden")
stage.reset(1, 4)
stage.prefill(np.array([[7, 3]]), np.ones((1, 2), bool), None)
assert np.isfinite(stage.step(np.zeros((1, 4), np.int64)).logits).all()
print(sorted({{"torch", "onnx"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("lengths", [(1,), (3, 11, 1, 7)])
def test_the_portable_graph_speaks_like_torch_too(
    reference, tiny_voice: Voice, tmp_path: Path, lengths
) -> None:
    details = export_portable_gpt(load_gpt(tiny_voice.folder), tmp_path)
    made = artifact("gpt", tmp_path, tiny_voice.folder, details)
    stage = OrtCpuEngine().load("gpt", made, device="cpu", threads=1, audio_path="hidden")
    config = tiny_voice.config.gpt
    ids, mask = prompts(lengths, config.num_text_tokens, SPEAKER_TOKEN)
    ids, mask = np.pad(ids, ((0, 0), (2, 0))), np.pad(mask, ((0, 0), (2, 0)))  # padding that every row has
    speaker = np.random.default_rng(3).standard_normal((len(lengths), config.hidden)).astype(np.float32)
    fed = codes(4, len(lengths))
    for given in (speaker, None):
        mine, wanted = (drive(each, ids, mask, given, fed) for each in (stage, reference))
        assert largest_difference(mine, wanted) < 2e-5
    sizes = stage.memory()
    assert sizes["kv_bytes"] == len(lengths) * (max(lengths) + 4) * sizes["kv_row_position_bytes"]
    assert set(stage.placement()) == {"CPUExecutionProvider"}
    with pytest.raises(ValueError, match="exceeds the capacity"):
        for each in codes(9, len(lengths)):
            stage.step(each)
    with pytest.raises(SpecError, match="256"):
        stage.reset(1, 257)
    with pytest.raises(RuntimeError, match="call reset"):
        stage.step(codes(1, 5)[0])


def test_a_vocoder_may_leave_the_inverse_transform_to_numpy(tiny_voice: Voice, tmp_path: Path) -> None:
    network = load_vocoder(tiny_voice.folder)
    mel = np.random.default_rng(0).standard_normal((2, 100, 7)).astype(np.float32)
    audio = []
    for port in ("mel", "mel-spectrum"):
        (folder := tmp_path / port).mkdir()
        made = artifact(
            "vocoder", folder, tiny_voice.folder, export_network(network, port, tiny_voice.config, folder)
        )
        stage = OrtCpuEngine().load("vocoder", made, device="cpu", threads=1, audio_path="hidden")
        audio.append(stage(mel))
    assert audio[0].shape == (2, 6 * 256)
    np.testing.assert_allclose(audio[0], audio[1], atol=1e-6)
