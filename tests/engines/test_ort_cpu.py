"""What ONNX Runtime's CPU engine has of its own; `test_contract.py` holds what every engine promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.engines.base import Artifact
from labkit.engines.ort_stages import OrtGpt, OrtNetwork
from labkit.export.gpt_onnx import export_gpt
from labkit.export.gpt_portable import export_portable_gpt
from labkit.export.networks_onnx import export_network
from labkit.model.checkpoint import load_gpt, load_vocoder
from labkit.spec import Option
from labkit.voices import Voice
from tests.engines.driving import codes, drive, largest_difference, prompts
from tests.engines.making import SPEAKER_TOKEN, artifact, load


@pytest.fixture(scope="module")
def gpt_artifact(tiny_voice: Voice, tmp_path_factory) -> Artifact:
    folder = tmp_path_factory.mktemp("gpt")
    return artifact(
        "ort-cpu", "gpt", folder, tiny_voice.folder, export_gpt(load_gpt(tiny_voice.folder), folder)
    )


@pytest.fixture
def stage(gpt_artifact: Artifact) -> OrtGpt:
    return load(gpt_artifact)


def test_padding_on_every_row_is_only_padding(stage, tiny_voice: Voice) -> None:
    ids, mask = prompts((5, 3), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    wider = np.pad(ids, ((0, 0), (4, 0))), np.pad(mask, ((0, 0), (4, 0)))
    fed = codes(3, 2)
    assert largest_difference(drive(stage, ids, mask, None, fed), drive(stage, *wider, None, fed)) == 0


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
    plain = artifact(
        "ort-cpu", "gpt", gpt_artifact.folder, tiny_voice.folder, gpt_artifact.details, options=options
    )
    stage = load(plain)
    settings = stage.session.get_session_options()
    assert not settings.enable_cpu_mem_arena
    assert not settings.enable_mem_pattern
    assert settings.graph_optimization_level.name == "ORT_DISABLE_ALL"
    assert settings.intra_op_num_threads == 1
    assert settings.get_session_config_entry("session.disable_prepacking") == "1"
    assert settings.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_a_network_is_placed(tiny_voice: Voice, tmp_path: Path) -> None:
    export_network(load_vocoder(tiny_voice.folder), "mel", tiny_voice.config, tmp_path)
    stage = load(artifact("ort-cpu", "vocoder", tmp_path, tiny_voice.folder, {}))
    assert isinstance(stage, OrtNetwork)
    assert set(stage.placement()) == {"CPUExecutionProvider"}


def test_the_portable_graph_keeps_no_padding_that_every_row_has(tiny_voice: Voice, tmp_path: Path) -> None:
    details = export_portable_gpt(load_gpt(tiny_voice.folder), tmp_path)
    stage = load(artifact("ort-cpu", "gpt", tmp_path, tiny_voice.folder, details))
    ids, mask = prompts((3, 11, 1, 7), tiny_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    ids, mask = (np.pad(each, ((0, 0), (2, 0))) for each in (ids, mask))
    drive(stage, ids, mask, None, codes(4, 4))
    sizes = stage.memory()
    assert sizes["kv_bytes"] == 4 * (11 + 4) * sizes["kv_row_position_bytes"]
    assert set(stage.placement()) == {"CPUExecutionProvider"}
