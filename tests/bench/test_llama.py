from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.bench import llama
from labkit.bench.arms import llama_arm
from labkit.bench.llama_file import build_seconds, model_file, step_weight_bytes, write_llama
from labkit.bench.own import usable_cores
from labkit.errors import UnavailableError
from labkit.model.checkpoint import load_gpt
from labkit.voices import Voice


def test_without_the_packages_the_arm_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"xllamacpp and gguf not installed.*labkit\[peers\]"):
        llama.require_llama()


def test_a_step_reads_the_layers_in_blocks_and_the_heads_in_float32() -> None:
    sizes = {"layers": 2, "hidden": 64, "intermediate": 128, "head_rows": 10}
    matrices, heads = 2 * (4 * 64**2 + 3 * 64 * 128), 4 * 10 * 64
    assert step_weight_bytes("F32", **sizes) == 4 * matrices + heads
    assert step_weight_bytes("Q8_0", **sizes) == matrices + matrices * 2 // 32 + heads
    assert step_weight_bytes("Q4_0", **sizes) == matrices // 2 + matrices * 2 // 32 + heads


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    return tmp_path


def test_the_file_holds_the_weights_of_the_voice(tiny_voice: Voice, cache: Path) -> None:
    gguf = pytest.importorskip("gguf")
    file = write_llama(tiny_voice.folder, "F32")
    assert file == model_file(tiny_voice.folder, "F32") and (build_seconds(file) or 0) > 0
    assert not list(cache.rglob("*.part"))
    reader = gguf.GGUFReader(str(file))
    tensors = {tensor.name: np.asarray(tensor.data) for tensor in reader.tensors}
    gpt = load_gpt(tiny_voice.folder, decoding_layout=False)
    hidden = gpt.config.hidden
    layer = gpt.layers[1]
    np.testing.assert_array_equal(
        tensors["blk.1.attn_k.weight"], layer.qkv.weight[hidden : 2 * hidden].numpy()
    )
    np.testing.assert_array_equal(tensors["blk.1.ffn_down.weight"], layer.down.weight.numpy())
    np.testing.assert_array_equal(tensors["output.weight"], gpt.code_head.weight.numpy())


def test_llama_takes_steps(tiny_voice: Voice, cache: Path) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("xllamacpp")
    arm = llama_arm("F32", tiny_voice, usable_cores()[-1:], lambda line: None)
    try:
        held = arm.load()
        assert held["step_weights_bytes"] > 0 and held["size_on_disk_bytes"] > 0 and held["build_s"] > 0
        arm.ready(20, 8)
        first, second = arm.take(4), arm.take(4)
    finally:
        arm.close()
    assert first["network_cpu_s"][0] > 0 and second["network_wall_s"][0] > 0
