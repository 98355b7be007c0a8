from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.artifacts import making
from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.plans import plan_stage
from labkit.errors import ParityError, SpecError
from labkit.export.networks_onnx import VOCODER_HEAD
from labkit.spec import Option, StageChoice
from labkit.voices import Voice


def make(voice: Voice, cache: Path, precision: str, stage: str = "gpt", **options: Option):
    lines: list[str] = []
    plan = plan_stage(
        stage, StageChoice(engine="ort-cpu", precision=precision, options=options), voice, "hidden"
    )
    manifest = making.make(plan, voice, "hidden", ArtifactFolder(cache), lines.append)
    return manifest, lines


def test_a_block_that_does_not_fit_the_voice_is_refused_before_anything_is_exported(
    tiny_voice: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_exact", lambda _: pytest.fail("work was begun"))
    with pytest.raises(
        SpecError, match=r"block_size 32 does not divide the 48 inputs of every layer; choose int8-dynamic"
    ):
        make(tiny_voice, tmp_path, "int4-weight")


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


def test_a_portable_gpt_and_a_vocoder_up_to_its_spectrum_are_options(
    tiny_voice: Voice, tmp_path: Path
) -> None:
    manifest, _ = make(tiny_voice, tmp_path, "fp32", graph="portable")
    assert manifest["details"]["graph"] == "portable"
    assert {figure["case"] for figure in manifest["details"]["parity"]} >= {
        "smallest",
        "mixed batch",
        "largest",
    }
    assert max(figure["max_abs"] for figure in manifest["details"]["parity"]) < 1e-4
    fused, _ = make(tiny_voice, tmp_path, "fp32")
    assert fused["content_hash"] != manifest["content_hash"]
    spectrum, _ = make(tiny_voice, tmp_path, "fp32", "vocoder", inverse_stft="numpy")
    assert spectrum["details"]["hop"] == 256
    assert max(figure["max_abs"] for figure in spectrum["details"]["parity"]) < 1e-5


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


@pytest.mark.parametrize(
    ("precision", "options", "share"),
    [
        ("int8-weight", {}, 0.45),
        ("int4-weight", {"algorithm": "hqq"}, 0.35),
        ("int4-weight", {"symmetric": True, "quantize_heads": True}, 0.2),
    ],
)
def test_weights_in_blocks_are_made_smaller_and_stay_near(
    blocky_voice: Voice, tmp_path: Path, precision: str, options: dict[str, Option], share: float
) -> None:
    manifest, _ = make(blocky_voice, tmp_path, precision, **options)
    exact, _ = make(blocky_voice, tmp_path, "fp32")
    size = manifest["details"]["step_weights_bytes"] / exact["details"]["step_weights_bytes"]
    heads = 4 * 626 * 64 * 4 / exact["details"]["step_weights_bytes"]
    assert size < (share if options.get("quantize_heads") else heads + share * (1 - heads))
    assert min(figure["cosine"] for figure in manifest["details"]["parity"]) > 0.95


@pytest.mark.filterwarnings("ignore::labkit.text.check.DomainWarning")
def test_static_ranges_come_from_the_voice_speaking_a_calibration_list(
    tiny_voice: Voice, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    manifest, lines = make(tiny_voice, tmp_path, "int8-static", sentences=50)
    assert any("calibrating on sentence 50" in line for line in lines)
    assert len(manifest["inputs"]["calibration"]) == 32
    assert min(figure["cosine"] for figure in manifest["details"]["parity"]) > 0.97
    other = plan_stage(
        "gpt",
        StageChoice(engine="ort-cpu", precision="int8-static", options={"sentences": 200}),
        tiny_voice,
        "hidden",
    )
    assert other.inputs["calibration"] != manifest["inputs"]["calibration"]


@pytest.mark.parametrize("stage", ["decoder", "vocoder"])
def test_a_network_keeps_its_convolutions_and_the_vocoder_its_head(
    tiny_voice: Voice, tmp_path: Path, stage: str
) -> None:
    manifest, _ = make(tiny_voice, tmp_path, "int8-dynamic", stage)
    nodes = onnx.load(tmp_path / "artifacts" / manifest["content_hash"] / "network.onnx").graph.node
    operators = Counter(node.op_type for node in nodes)
    assert operators["MatMulInteger"] == manifest["details"]["quantized_nodes"] == 4
    assert operators["Conv"] > 0 and operators["ConvInteger"] == 0
    kept = {node.name for node in nodes if node.op_type == "MatMul"}
    assert (VOCODER_HEAD in kept) == (stage == "vocoder")
    assert min(figure["cosine"] for figure in manifest["details"]["parity"]) > 0.99


@pytest.mark.filterwarnings("ignore::labkit.text.check.DomainWarning")
@pytest.mark.parametrize(
    ("stage", "options", "kept"),
    [
        ("gpt", {}, {"code heads", "mean of squares"}),
        ("gpt", {"graph": "portable"}, {"code heads", "mean of squares"}),
        ("decoder", {}, set()),
        ("vocoder", {"inverse_stft": "numpy"}, {"vocoder head and after"}),
    ],
)
def test_half_precision_halves_the_weights_and_names_what_it_leaves(
    tiny_voice: Voice, tmp_path: Path, monkeypatch, stage: str, options: dict[str, Option], kept: set[str]
) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    manifest, lines = make(tiny_voice, tmp_path, "fp16", stage, **options)
    exact, _ = make(tiny_voice, tmp_path, "fp32", stage, **options)
    assert any("half precision" in line for line in lines)
    assert set(manifest["details"]["kept_in_fp32"]) == kept
    assert min(figure["cosine"] for figure in manifest["details"]["parity"]) > 0.999
    sizes = [sum(file["size_bytes"] for file in made["files"].values()) for made in (manifest, exact)]
    assert sizes[0] < 0.95 * sizes[1]
    assert len(manifest["inputs"]["recordings"]) == 32
    if stage == "gpt":
        steps = [made["details"]["step_weights_bytes"] for made in (manifest, exact)]
        assert steps[0] < 0.9 * steps[1]  # heads are most of a tiny voice
