"""What OpenVINO's engine has of its own; `test_contract.py` holds what every engine promises."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from labkit.engines.base import Artifact, GptStage
from labkit.engines.openvino_engine import OpenVinoEngine
from labkit.engines.torch_stages import TorchGpt
from labkit.errors import SpecError, UnavailableError
from labkit.model.checkpoint import load_gpt
from labkit.quantize.openvino_weights import INT4_OPTIONS, INT8_OPTIONS, rounding
from labkit.voices import Voice
from tests.engines.driving import codes, drive, prompts
from tests.engines.making import SPEAKER_TOKEN, artifact, load

pytest.importorskip("openvino")

from labkit.export.gpt_openvino import export_openvino_gpt


@pytest.fixture(scope="module")
def gpt_artifact(tiny_voice: Voice, tmp_path_factory) -> Artifact:
    folder = tmp_path_factory.mktemp("gpt")
    return artifact(
        "openvino", "gpt", folder, tiny_voice.folder, export_openvino_gpt(load_gpt(tiny_voice.folder), folder)
    )


@pytest.fixture(scope="module")
def stage(gpt_artifact: Artifact) -> GptStage:
    return load(gpt_artifact)


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
    details["activation_block"] = 32
    made = artifact("openvino", "gpt", tmp_path, blocky_voice.folder, details, precision=precision)
    narrow, wide = load(made), TorchGpt(gpt, SPEAKER_TOKEN)
    ids, mask = prompts((3, 11, 1), blocky_voice.config.gpt.num_text_tokens, SPEAKER_TOKEN)
    mine, wanted = (drive(each, ids, mask, None, codes(4, 3)) for each in (narrow, wide))
    for one, other in zip(mine, wanted, strict=True):
        a, b = one.logits.ravel(), other.logits.ravel()
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > least
        assert np.abs(a - b).max() > 0  # it was not float32 after all
    numbers = narrow.memory()["kv_row_position_bytes"], wide.memory()["kv_row_position_bytes"]
    assert numbers[1] == numbers[0] * (2 if precision == "bf16" else 1)


def test_it_knows_no_half_precision_for_the_gpt() -> None:
    assert "fp16" not in OpenVinoEngine().precisions("gpt")


def test_a_missing_package_is_named_with_its_remedy(gpt_artifact: Artifact, monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"labkit\[openvino\]"):
        load(gpt_artifact)


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
