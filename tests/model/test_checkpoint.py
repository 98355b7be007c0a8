from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from labkit.errors import CheckpointError
from labkit.model import layout
from labkit.model.checkpoint import (
    Embeddings,
    load_decoder,
    load_dvae,
    load_embeddings,
    load_gpt,
    load_text_head,
    load_vocoder,
    save_voice,
)
from labkit.model.layout import VoiceCard
from labkit.model.tensorfile import TensorFile, write_tensors
from labkit.voices import Voice
from tests.conftest import TINY

LOADERS = {
    layout.GPT_WEIGHTS: load_gpt,
    layout.EMBED_WEIGHTS: load_gpt,
    layout.DECODER_WEIGHTS: load_decoder,
    layout.DVAE_WEIGHTS: load_dvae,
    layout.VOCODER_WEIGHTS: load_vocoder,
}
CARD = VoiceCard(name="copy", licence="none")


@pytest.fixture
def copied(tiny_voice: Voice, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_voice.folder, tmp_path / "asset"))


def change(path: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path)


def test_projections_are_fused_in_order(tiny_voice: Voice) -> None:
    stored = load_file(tiny_voice.folder / layout.GPT_WEIGHTS)
    layer = load_gpt(tiny_voice.folder).layers[1]
    for name, rows in (("q", slice(0, 48)), ("k", slice(48, 96)), ("v", slice(96, 144))):
        assert torch.equal(layer.qkv.weight[rows], stored[f"layers.1.self_attn.{name}_proj.weight"])
    assert torch.equal(layer.gate_up.weight[:88], stored["layers.1.mlp.gate_proj.weight"])
    assert torch.equal(layer.gate_up.weight[88:], stored["layers.1.mlp.up_proj.weight"])
    assert torch.equal(layer.mlp_norm.weight, stored["layers.1.post_attention_layernorm.weight"])


def test_weight_norm_is_folded_as_torch_defines_it(copied: Path) -> None:
    """A linear under torch's own parametrization gives the stored names and the effective weight."""
    linear = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(48, 626, bias=False))
    with torch.no_grad():
        linear.parametrizations.weight.original0.mul_(torch.rand(626, 1) + 0.5)

    def put(tensors: dict[str, torch.Tensor]) -> None:
        for name, value in linear.state_dict().items():
            assert f"head_code.2.{name}" in tensors
            tensors[f"head_code.2.{name}"] = value

    change(copied / layout.EMBED_WEIGHTS, put)
    head = load_gpt(copied).code_head.weight.view(4, 626, 48)
    assert torch.allclose(head[2], linear.weight, atol=1e-6)


def test_every_part_lands_in_its_place(tiny_voice: Voice) -> None:
    dvae, stored = load_dvae(tiny_voice.folder), load_file(tiny_voice.folder / layout.DVAE_WEIGHTS)
    assert torch.equal(dvae.coef, stored["coef"])
    assert torch.equal(dvae.decoder.blocks[1].scale, stored["decoder.decoder_block.1.weight"])
    assert torch.equal(
        dvae.encoder.blocks[0].pwconv1.weight, stored["encoder.decoder_block.0.pwconv1.weight"]
    )
    assert torch.equal(
        dvae.vq_layer.project_out[1].bias, stored["vq_layer.quantizer.rvqs.1.project_out.bias"]
    )
    vocoder, stored = load_vocoder(tiny_voice.folder), load_file(tiny_voice.folder / layout.VOCODER_WEIGHTS)
    assert torch.equal(vocoder.blocks[1].scale, stored["backbone.convnext.1.gamma"])
    assert torch.equal(vocoder.final_norm.bias, stored["backbone.final_layer_norm.bias"])
    assert torch.equal(vocoder.out.weight, stored["head.out.weight"])
    assert torch.equal(stored["head.istft.window"], torch.hann_window(1024))


def test_modules_come_ready_for_inference(tiny_voice: Voice) -> None:
    for load in (load_gpt, load_decoder, load_dvae, load_vocoder):
        module = load(tiny_voice.folder)
        assert not module.training and not any(p.requires_grad for p in module.parameters())
        assert {p.dtype for p in module.parameters()} == {torch.float32}


def test_float32_gpts_are_laid_out_for_decoding_unless_they_are_to_be_cast(tiny_voice: Voice) -> None:
    laid, plain = load_gpt(tiny_voice.folder), load_gpt(tiny_voice.folder, decoding_layout=False)
    assert not laid.layers[0].qkv.weight.is_contiguous() and plain.layers[0].qkv.weight.is_contiguous()
    assert all(torch.equal(a, b) for a, b in zip(laid.parameters(), plain.parameters(), strict=True))


def test_a_narrower_type_is_the_rounded_weight(tiny_voice: Voice) -> None:
    wide, narrow = load_gpt(tiny_voice.folder), load_gpt(tiny_voice.folder, torch.bfloat16)
    for a, b in zip(wide.parameters(), narrow.parameters(), strict=True):
        assert torch.equal(a.bfloat16(), b)


def test_a_saved_voice_is_the_rounded_voice_and_then_stays(tiny_voice: Voice, tmp_path: Path) -> None:
    stages = {
        "gpt": load_gpt(tiny_voice.folder),
        "decoder": load_decoder(tiny_voice.folder),
        "dvae": load_dvae(tiny_voice.folder),
        "vocoder": load_vocoder(tiny_voice.folder),
    }
    save_voice(tmp_path / "a", TINY, CARD, **stages)
    again = {name: LOAD(tmp_path / "a") for name, LOAD in ALL.items()}
    for name, stage in stages.items():
        for (key, old), new in zip(
            stage.state_dict().items(), again[name].state_dict().values(), strict=True
        ):
            rounded = old.half().float() if max(old.shape) < old.numel() else old
            assert torch.allclose(rounded, new, rtol=1e-6, atol=1e-9), key
    save_voice(tmp_path / "b", TINY, CARD, **again)
    for file in layout.WEIGHT_FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


ALL = {"gpt": load_gpt, "decoder": load_decoder, "dvae": load_dvae, "vocoder": load_vocoder}


def test_saving_one_stage_keeps_the_others(copied: Path) -> None:
    before = (copied / layout.GPT_WEIGHTS).read_bytes()
    vocoder = load_vocoder(copied)
    vocoder.out.bias += 1
    save_voice(copied, TINY, CARD, vocoder=vocoder)
    assert (copied / layout.GPT_WEIGHTS).read_bytes() == before
    assert torch.equal(load_vocoder(copied).out.bias, vocoder.out.bias)


def test_embeddings_and_text_head_without_torch(tiny_voice: Voice) -> None:
    gpt = load_gpt(tiny_voice.folder)
    text, code = load_embeddings(tiny_voice.folder)
    assert np.array_equal(text, gpt.text_embedding.weight.numpy())
    assert np.array_equal(code.reshape(-1, 48), gpt.code_embedding.weight.numpy())
    assert not text.flags.writeable and not code.flags.writeable
    assert np.array_equal(load_text_head(tiny_voice.folder), gpt.text_head.weight.numpy())


@pytest.mark.skipif(sys.platform != "linux", reason="counts resident pages as Linux tells them")
def test_a_mapped_table_keeps_no_pages_of_rows_that_were_read(tmp_path: Path) -> None:
    rows, width = 4096, 1024  # 16 MB
    file = tmp_path / "table.safetensors"
    table = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    write_tensors(file, {"table": ("F32", table.shape)}, lambda name: table)
    embeddings = Embeddings(TensorFile(file).view("table", table.shape), np.zeros((4, 8, width), np.float32))
    ids = np.arange(0, rows, 64)
    read = embeddings.text_rows(ids)
    assert np.array_equal(read, table[ids]) and read.flags.writeable and type(read) is np.ndarray
    assert resident_kb(file) == 0
    assert np.array_equal(embeddings.text[7], table[7]) and resident_kb(file) > 0  # the measure can fail


def resident_kb(file: Path) -> int:
    """Resident kilobytes of a mapped file, by /proc/self/smaps."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    return sum(
        int(next(line for line in lines if line.startswith("Rss:")).split()[1])
        for line in lines
        if line.endswith(str(file))
    )


@pytest.mark.parametrize("file", LOADERS)
def test_a_missing_tensor_is_named(copied: Path, file: str) -> None:
    name = next(
        key for key in sorted(load_file(copied / file)) if "mel_spec" not in key and "istft" not in key
    )
    change(copied / file, lambda tensors: tensors.pop(name))
    with pytest.raises(CheckpointError, match=f"{name}.*is missing") as error:
        LOADERS[file](copied)
    assert file in str(error.value)


@pytest.mark.parametrize("file", LOADERS)
def test_an_extra_tensor_is_named(copied: Path, file: str) -> None:
    change(copied / file, lambda tensors: tensors.update(stranger=torch.zeros(3)))
    with pytest.raises(CheckpointError, match=r"unexpected tensors 'stranger' \(3,\)"):
        LOADERS[file](copied)


@pytest.mark.parametrize("file", LOADERS)
def test_a_misshapen_tensor_is_named_with_both_shapes(copied: Path, file: str) -> None:
    tensors = load_file(copied / file)
    name = next(k for k in sorted(tensors) if tensors[k].dim() == 2 and "mel_spec" not in k)
    found, expected = tuple(tensors[name].T.shape), tuple(tensors[name].shape)
    if found == expected:
        found = (expected[0], expected[1] + 1)
    change(copied / file, lambda t: t.update({name: torch.zeros(found)}))
    with pytest.raises(CheckpointError) as error:
        LOADERS[file](copied)
    assert name in str(error.value) and str(found) in str(error.value) and str(expected) in str(error.value)


@pytest.mark.parametrize("file", LOADERS)
def test_a_truncated_file_is_named(copied: Path, file: str) -> None:
    data = (copied / file).read_bytes()
    (copied / file).write_bytes(data[:-100])
    with pytest.raises(CheckpointError, match="truncated") as error:
        LOADERS[file](copied)
    assert file in str(error.value)


def test_llamas_own_unused_embedding_is_ignored(copied: Path) -> None:
    change(copied / layout.GPT_WEIGHTS, lambda t: t.update({"embed_tokens.weight": torch.zeros(9, 48)}))
    assert load_gpt(copied).layers[0].qkv.weight.shape == (144, 48)


def test_files_without_the_stored_constants_load(copied: Path) -> None:
    def drop(tensors: dict[str, torch.Tensor]) -> None:
        for name in [k for k in tensors if "mel_spec" in k or "istft" in k]:
            del tensors[name]

    change(copied / layout.VOCODER_WEIGHTS, drop)
    assert load_vocoder(copied)(torch.zeros(1, 100, 3)).shape == (1, 512)


def test_a_direction_of_zeros_cannot_be_folded(copied: Path) -> None:
    name = "head_code.0.parametrizations.weight.original1"
    change(copied / layout.EMBED_WEIGHTS, lambda t: t[name][3].zero_())
    with pytest.raises(CheckpointError, match="row of zeros"):
        load_gpt(copied)
