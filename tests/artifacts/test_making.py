from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.artifacts import making
from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.plans import plan_stage
from labkit.errors import ParityError
from labkit.spec import StageChoice
from labkit.voices import Voice


def make(voice: Voice, cache: Path, precision: str, stage: str = "gpt", **options: bool):
    lines: list[str] = []
    plan = plan_stage(
        stage, StageChoice(engine="ort-cpu", precision=precision, options=options), voice, "hidden"
    )
    manifest = making.make(plan, voice, "hidden", ArtifactFolder(cache), lines.append)
    return manifest, lines


def test_a_quantized_gpt_is_made_from_the_exported_one_and_both_are_kept(
    tiny_voice: Voice, tmp_path: Path
) -> None:
    manifest, lines = make(tiny_voice, tmp_path, "int8-dynamic")
    exact, nothing = make(tiny_voice, tmp_path, "fp32")
    assert nothing == []
    assert any("exporting" in line for line in lines) and any("quantizing" in line for line in lines)
    assert manifest["seconds"].keys() == {"export", "quantize", "parity"}
    assert manifest["seconds"]["export"] == exact["seconds"]["export"]
    assert manifest["details"]["step_weights_bytes"] < 0.8 * exact["details"]["step_weights_bytes"]
    errors = {name: max(each["max_abs"] for each in made["details"]["parity"])
              for name, made in (("fp32", exact), ("int8", manifest))}  # fmt: skip
    assert errors["fp32"] < 1e-4 < errors["int8"]
    assert exact["inputs"]["weights_hash"] == tiny_voice.weights_hash


def test_wrong_numbers_are_never_cached(tiny_voice: Voice, tmp_path: Path, monkeypatch) -> None:
    from labkit.export import networks_onnx

    right = networks_onnx.export_network

    def wrong(network, kind, config, folder):
        network.out.bias.data[5] += 0.5  # the copy that is exported, not the voice
        return right(network, kind, config, folder)

    monkeypatch.setattr(networks_onnx, "export_network", wrong)
    with pytest.raises(ParityError, match="exported vocoder: audio"):
        make(tiny_voice, tmp_path, "fp32", "vocoder")
    assert [path.name for path in (tmp_path / "artifacts").iterdir() if path.is_dir()] == []


def test_a_damaged_artifact_is_made_again_and_says_so(tiny_voice: Voice, tmp_path: Path) -> None:
    manifest, _ = make(tiny_voice, tmp_path, "fp32", "decoder")
    file = tmp_path / "artifacts" / manifest["content_hash"] / "network.onnx"
    whole = np.fromfile(file, np.uint8)
    whole[len(whole) // 2] ^= 1
    whole.tofile(file)
    again, lines = make(tiny_voice, tmp_path, "fp32", "decoder")
    assert any("damaged: network.onnx has changed" in line for line in lines)
    assert "network.onnx has changed" in again["note"]
    assert again["files"] == manifest["files"]
