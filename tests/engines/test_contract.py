"""What every engine promises, whatever it runs on: the same words, rows apart from each other, named refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit.engines.base import Artifact, GptStage, Unavailable, get_engine
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import ArtifactError, SpecError
from labkit.export.gpt_onnx import export_gpt
from labkit.export.gpt_portable import export_portable_gpt
from labkit.export.networks_onnx import export_network
from labkit.model.checkpoint import load_gpt, load_vocoder
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts
from tests.engines.making import SPEAKER_TOKEN, artifact, load


def _export_openvino(gpt: Any, folder: Path) -> dict[str, Any]:
    pytest.importorskip("openvino")
    from labkit.export.gpt_openvino import export_openvino_gpt

    return export_openvino_gpt(gpt, folder)


# how a GPT is made for an engine -> the engine, and what writes its files (None: it reads the voice's own)
MADE: dict[str, tuple[str, Callable[[Any, Path], dict[str, Any]] | None]] = {
    "torch": ("torch", None),
    "ort-cpu": ("ort-cpu", export_gpt),
    "ort-cpu, portable": ("ort-cpu", export_portable_gpt),
    "openvino": ("openvino", _export_openvino),
}
GRAPHS = [name for name in MADE if name != "torch"]
GRAPH_ENGINES = ["ort-cpu", "openvino"]


@pytest.fixture(scope="module")
def gpt_artifact(request: pytest.FixtureRequest, tiny_voice: Voice, tmp_path_factory) -> Artifact:
    engine, export = MADE[request.param]
    if export is None:
        return artifact(engine, "gpt", tiny_voice.folder, tiny_voice.folder, {})
    folder = tmp_path_factory.mktemp("gpt")
    return artifact(engine, "gpt", folder, tiny_voice.folder, export(load_gpt(tiny_voice.folder), folder))


@pytest.fixture(scope="module")
def stage(gpt_artifact: Artifact) -> GptStage:
    return load(gpt_artifact)


@pytest.fixture(scope="module")
def reference(tiny_voice: Voice) -> TorchGpt:
    return TorchGpt(load_gpt(tiny_voice.folder), SPEAKER_TOKEN)


every_gpt = pytest.mark.parametrize("gpt_artifact", MADE, indirect=True)
every_graph = pytest.mark.parametrize("gpt_artifact", GRAPHS, indirect=True)


@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("lengths", [(1,), (8,), (3, 11, 1, 7), (2, 2)])
@every_graph
def test_speaks_like_torch_whatever_the_lengths_in_a_batch(
    stage, reference, tiny_voice: Voice, lengths: tuple[int, ...], padding: int
) -> None:
    config = tiny_voice.config.gpt
    ids, mask = prompts(lengths, config.num_text_tokens, SPEAKER_TOKEN)
    ids, mask = (np.pad(each, ((0, 0), (padding, 0))) for each in (ids, mask))  # padding that every row has
    speaker = np.random.default_rng(3).standard_normal((len(lengths), config.hidden)).astype(np.float32)
    fed = codes(6, len(lengths))
    for given in (speaker, None):
        mine, wanted = (drive(each, ids, mask, given, fed) for each in (stage, reference))
        assert largest_difference(mine, wanted) < 2e-5


@every_graph
def test_text_steps_equal_torch(stage, reference, tiny_voice: Voice) -> None:
    ids, mask = prompts((4, 2), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    outputs = []
    for each in (stage, reference):
        each.reset(2, 10)
        each.prefill(ids, mask, None)
        outputs.append([each.step_text(np.array([5, 9])), each.step_text(np.array([1, 2]))])
    assert largest_difference(*outputs) < 2e-5


@every_gpt
def test_a_row_is_the_same_alone_and_in_a_mixed_batch(stage, tiny_voice: Voice) -> None:
    lengths, config = (9, 2, 5), tiny_voice.config.gpt
    ids, mask = prompts(lengths, config.num_text_tokens, SPEAKER_TOKEN)
    speaker = np.random.default_rng(3).standard_normal((len(lengths), config.hidden)).astype(np.float32)
    fed = codes(4, len(lengths))
    together = drive(stage, ids, mask, speaker, fed)
    for row, length in enumerate(lengths):
        at = slice(row, row + 1)
        alone = drive(stage, ids[at, -length:], mask[at, -length:], speaker[at], fed[:, at])
        mine = [type(each)(each.logits[at], each.hidden[at]) for each in together]
        assert largest_difference(alone, mine) < 2e-5


@every_gpt
def test_what_was_said_before_leaves_no_trace_and_what_was_given_out_stays(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    fed = codes(5, 1)
    first = drive(stage, ids, mask, None, fed)
    before = [(each.logits.copy(), each.hidden.copy()) for each in first]
    drive(stage, ids[:, ::-1].copy(), mask, None, fed[::-1])
    for given, (logits, hidden) in zip(first, before, strict=True):
        np.testing.assert_array_equal(given.logits, logits)
        np.testing.assert_array_equal(given.hidden, hidden)
        assert given.logits.dtype == given.hidden.dtype == np.float32
    assert largest_difference(first, drive(stage, ids, mask, None, fed)) == 0


@every_gpt
def test_stepping_beyond_the_capacity_or_the_voice_is_refused(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    stage.reset(1, 5)
    stage.prefill(ids, mask, None)
    stage.step(codes(1, 1)[0])
    with pytest.raises(ValueError, match="exceeds the capacity 5"):
        stage.step(codes(1, 1)[0])
    with pytest.raises((SpecError, ValueError), match="256"):
        stage.reset(1, 257)
    with pytest.raises(RuntimeError, match="call reset"):
        stage.step(codes(1, 3)[0])


@every_graph
def test_a_prompt_of_padding_alone_is_refused(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((4,), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    stage.reset(1, 5)
    with pytest.raises(ValueError, match="no real token"):
        stage.prefill(ids, np.zeros_like(mask), None)


@every_gpt
def test_the_cache_is_counted_once_it_is_there(gpt_artifact: Artifact, tiny_voice: Voice) -> None:
    stage = load(gpt_artifact)
    assert "kv_bytes" not in stage.memory()
    ids, mask = prompts((4, 3), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    drive(stage, ids, mask, None, codes(3, 2))
    sizes = stage.memory()
    assert sizes["kv_bytes"] == 2 * (4 + 3) * sizes["kv_row_position_bytes"]


@pytest.mark.parametrize("gpt_artifact", GRAPH_ENGINES, indirect=True)
def test_speaking_needs_no_torch(gpt_artifact: Artifact) -> None:
    """A fresh process loads and drives the stage; torch must not have been imported by anything on the way."""
    engine = gpt_artifact.choice.engine
    program = f"""
import sys
from pathlib import Path
import numpy as np
from labkit.engines.base import Artifact, get_engine
from labkit.spec import StageChoice
artifact = Artifact("gpt", StageChoice(engine={engine!r}), Path({str(gpt_artifact.folder)!r}), {gpt_artifact.files!r},
                    0, None, True, "", Path({str(gpt_artifact.voice_folder)!r}), {dict(gpt_artifact.details)!r})
stage = get_engine({engine!r}).load("gpt", artifact, device="cpu", threads=1, audio_path="hidden")
stage.reset(1, 4)
stage.prefill(np.array([[7, 3]]), np.ones((1, 2), bool), None)
assert np.isfinite(stage.step(np.zeros((1, 4), np.int64)).logits).all()
print(sorted({{"torch", "onnx"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("engine", GRAPH_ENGINES)
def test_a_vocoder_runs_with_the_inverse_transform_inside_or_outside(
    engine: str, tiny_voice: Voice, tmp_path: Path
) -> None:
    if engine == "openvino":
        pytest.importorskip("openvino")
    network = load_vocoder(tiny_voice.folder)
    mel = np.random.default_rng(0).standard_normal((2, 100, 7))  # float64 is taken as well
    audio = []
    for port in ("mel", "mel-spectrum"):
        (folder := tmp_path / port).mkdir()
        details = export_network(network, port, tiny_voice.config, folder)
        audio.append(load(artifact(engine, "vocoder", folder, tiny_voice.folder, details))(mel))
    assert audio[0].shape == (2, 6 * 256)
    assert audio[0].dtype == np.float32
    np.testing.assert_allclose(audio[0], audio[1], atol=1e-6)


@pytest.mark.parametrize("engine", GRAPH_ENGINES)
def test_there_is_no_device_but_the_cpu(engine: str) -> None:
    if engine == "openvino":
        pytest.importorskip("openvino")
    answer = get_engine(engine).availability("cuda")
    assert isinstance(answer, Unavailable)
    assert "cpu" in answer.remedy


@pytest.mark.parametrize("engine", GRAPH_ENGINES)
def test_an_artifact_without_a_graph_is_named(engine: str, tmp_path: Path) -> None:
    if engine == "openvino":
        pytest.importorskip("openvino")
    with pytest.raises(ArtifactError, match=str(tmp_path)):
        load(artifact(engine, "gpt", tmp_path, tmp_path, {}))
