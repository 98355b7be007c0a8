from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labkit.engines.base import Artifact, GptStage, Unavailable
from labkit.engines.openvino_engine import OpenVinoEngine
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import ArtifactError, SpecError, UnavailableError
from labkit.export.networks_onnx import export_network
from labkit.model.checkpoint import load_gpt, load_vocoder
from labkit.quantize.openvino_weights import INT4_OPTIONS, INT8_OPTIONS, rounding
from labkit.spec import StageChoice, StageName
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts

pytest.importorskip("openvino")

from labkit.export.gpt_openvino import export_openvino_gpt

SPEAKER_TOKEN = 7


def artifact(stage: StageName, folder: Path, voice: Path, details: dict, precision: str = "fp32") -> Artifact:
    return Artifact(
        stage=stage, choice=StageChoice.model_validate({"engine": "openvino", "precision": precision}), folder=folder,
        files=tuple(file.name for file in folder.iterdir()), size_bytes=0, build_s=None, cached=True, content_hash="",
        voice_folder=voice, details={"speaker_token": SPEAKER_TOKEN, **details},
    )  # fmt: skip


def load(made: Artifact) -> GptStage:
    return OpenVinoEngine().load(made.stage, made, device="cpu", threads=1, audio_path="hidden")


@pytest.fixture(scope="module")
def gpt_artifact(tiny_voice: Voice, tmp_path_factory) -> Artifact:
    folder = tmp_path_factory.mktemp("gpt")
    return artifact(
        "gpt", folder, tiny_voice.folder, export_openvino_gpt(load_gpt(tiny_voice.folder), folder)
    )


@pytest.fixture(scope="module")
def stage(gpt_artifact: Artifact) -> GptStage:
    return load(gpt_artifact)


@pytest.fixture(scope="module")
def reference(tiny_voice: Voice) -> TorchGpt:
    return TorchGpt(load_gpt(tiny_voice.folder), SPEAKER_TOKEN)


@pytest.mark.parametrize("lengths", [(1,), (8,), (3, 11, 1), (2, 2)])
def test_speaks_like_torch_whatever_the_lengths_in_a_batch(
    stage, reference, tiny_voice: Voice, lengths
) -> None:
    config = tiny_voice.config.gpt
    ids, mask = prompts(lengths, config.num_text_tokens, SPEAKER_TOKEN)
    ids, mask = np.pad(ids, ((0, 0), (2, 0))), np.pad(mask, ((0, 0), (2, 0)))  # padding that every row has
    speaker = np.random.default_rng(3).standard_normal((len(lengths), config.hidden)).astype(np.float32)
    fed = codes(6, len(lengths))
    for given in (speaker, None):
        mine, wanted = (drive(each, ids, mask, given, fed) for each in (stage, reference))
        assert largest_difference(mine, wanted) < 2e-5


def test_a_used_state_leaves_no_trace(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed = codes(5, 1)
    first = drive(stage, ids, mask, None, fed)
    before = first[0].logits.copy()
    drive(stage, ids[:, ::-1].copy(), mask, None, fed[::-1])
    np.testing.assert_array_equal(before, first[0].logits)  # what was given out is a copy
    assert largest_difference(first, drive(stage, ids, mask, None, fed)) == 0


def test_text_steps_equal_torch(stage, reference, tiny_voice: Voice) -> None:
    ids, mask = prompts((4, 2), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    outputs = []
    for each in (stage, reference):
        each.reset(2, 10)
        each.prefill(ids, mask, None)
        outputs.append([each.step_text(np.array([5, 9])), each.step_text(np.array([1, 2]))])
    assert largest_difference(*outputs) < 2e-5


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


def test_placement_and_memory_say_what_the_model_holds(
    stage, gpt_artifact: Artifact, tiny_voice: Voice
) -> None:
    (device, layers), *others = stage.placement().items()
    assert device == "CPU" and not others
    assert layers > 5 * tiny_voice.config.gpt.layers
    ids, mask = prompts((4, 3), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    drive(stage, ids, mask, None, codes(3, 2))
    sizes = stage.memory()
    assert sizes["kv_bytes"] == 2 * (4 + 3) * sizes["kv_row_position_bytes"]
    files = sum(file.stat().st_size for file in gpt_artifact.folder.iterdir())
    assert sizes["weights_bytes"] > files
    gpt = load_gpt(tiny_voice.folder)
    read = 4 * sum(
        each.numel() for part in (gpt.layers, gpt.norm, gpt.code_head) for each in part.parameters()
    )
    looked_up = 4 * gpt.config.hidden * gpt.config.num_codebooks
    assert sizes["step_weights_bytes"] == pytest.approx(read + looked_up, rel=0.02)  # constants are few


@pytest.mark.parametrize(
    ("precision", "options", "least"),
    [
        ("bf16", {}, 0.999),
        ("int8-weight", {"block_size": "channel", "symmetric": True}, 0.999),
        ("int8-weight", {"block_size": 32, "symmetric": False}, 0.999),
        ("int4-weight", {"block_size": 32, "symmetric": False, "algorithm": "hqq"}, 0.9),
        ("int4-weight", {"block_size": 32, "symmetric": True}, 0.9),
    ],
)
def test_narrower_precisions_say_nearly_the_same(
    blocky_voice: Voice, tmp_path: Path, precision: str, options: dict, least: float
) -> None:
    bits = {"int8-weight": 8, "int4-weight": 4}.get(precision)
    gpt = load_gpt(blocky_voice.folder)
    details = export_openvino_gpt(
        gpt, tmp_path, bfloat16=precision == "bf16",
        rounding=rounding(bits, options, lambda _: None) if bits else None,
    )  # fmt: skip
    made = artifact("gpt", tmp_path, blocky_voice.folder, {**details, "activation_block": 32}, precision)
    narrow, wide = load(made), TorchGpt(gpt, SPEAKER_TOKEN)
    ids, mask = prompts((3, 11, 1), blocky_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    mine, wanted = (drive(each, ids, mask, None, codes(4, 3)) for each in (narrow, wide))
    for one, other in zip(mine, wanted, strict=True):
        a, b = one.logits.ravel(), other.logits.ravel()
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > least
        assert np.abs(a - b).max() > 0  # it was not float32 after all
    numbers = narrow.memory()["kv_row_position_bytes"], wide.memory()["kv_row_position_bytes"]
    assert numbers[1] == numbers[0] * (2 if precision == "bf16" else 1)


def test_a_network_runs_with_the_inverse_transform_inside_or_outside(
    tiny_voice: Voice, tmp_path: Path
) -> None:
    network = load_vocoder(tiny_voice.folder)
    mel = np.random.default_rng(0).standard_normal((2, 100, 7))  # float64 is taken as well
    audio = []
    for port in ("mel", "mel-spectrum"):
        (folder := tmp_path / port).mkdir()
        details = export_network(network, port, tiny_voice.config, folder)
        stage = load(artifact("vocoder", folder, tiny_voice.folder, details))
        audio.append(stage(mel))
    assert audio[0].shape == (2, 6 * 256)
    assert audio[0].dtype == np.float32
    np.testing.assert_allclose(audio[0], audio[1], atol=1e-6)


def test_there_is_no_other_device_and_no_other_precision() -> None:
    engine = OpenVinoEngine()
    answer = engine.availability("cuda")
    assert isinstance(answer, Unavailable)
    assert "cpu" in answer.remedy
    assert "fp16" not in engine.precisions("gpt")


def test_a_missing_package_is_named_with_its_remedy(gpt_artifact: Artifact, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"labkit\[openvino\]"):
        load(gpt_artifact)


def test_an_artifact_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        load(artifact("gpt", tmp_path, tmp_path, {}))


def test_speaking_needs_no_torch(gpt_artifact: Artifact) -> None:
    """A fresh process loads and drives the stage; torch must not have been imported by anything on the way."""
    program = f"""
import sys
from pathlib import Path
import numpy as np
from labkit.engines.base import Artifact, get_engine
from labkit.spec import StageChoice
artifact = Artifact("gpt", StageChoice(engine="openvino"), Path({str(gpt_artifact.folder)!r}), {gpt_artifact.files!r},
                    0, None, True, "", Path({str(gpt_artifact.voice_folder)!r}), {dict(gpt_artifact.details)!r})
stage = get_engine("openvino").load("gpt", artifact, device="cpu", threads=1, audio_path="hidden")
stage.reset(1, 4)
stage.prefill(np.array([[7, 3]]), np.ones((1, 2), bool), None)
assert np.isfinite(stage.step(np.zeros((1, 4), np.int64)).logits).all()
print(sorted({{"torch", "onnx"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_options_at_their_defaults_fit_any_voice() -> None:
    """Rounding in whole channels always fits; a block that does not divide is named with the product."""
    weight = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    defaults = {name: values[0] for name, values in INT8_OPTIONS.items()}
    assert rounding(8, defaults, lambda _: None)("0.qkv", weight).codes.shape == (8, 1, 50)
    defaults = {name: values[0] for name, values in INT4_OPTIONS.items()}
    with pytest.raises(SpecError, match=r"block_size 32 does not divide the 50 inputs of 0\.qkv"):
        rounding(4, defaults, lambda _: None)("0.qkv", weight)
    with pytest.raises(SpecError, match="contradict"):
        rounding(4, {**defaults, "algorithm": "hqq", "symmetric": True}, lambda _: None)
