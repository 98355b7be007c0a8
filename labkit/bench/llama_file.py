"""A voice's GPT as a GGUF file, so that llama.cpp can take the same steps: for speed only.

The file is a Llama of the voice's layers and sizes. Its vocabulary are the audio codes: embedding table and output
matrix have as many rows as the four code heads together and stay in float32, as in the lab's own quantized graphs. The
pairs of rotary positions lie where the voice has them and not where llama.cpp looks for them, so the file says nothing
about quality.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from labkit.model.gpt import Gpt, Layer

TYPES = ("F32", "Q8_0", "Q4_0")
"""Of the layers' matrices; those that the `gguf` package can quantize to by itself."""
_BYTES_OF_A_BLOCK = {"F32": 4.0, "Q8_0": 34 / 32, "Q4_0": 18 / 32}  # bytes a weight, scales included
_BYTE_TOKENS = 256


def model_file(voice: Path, kind: str) -> Path:
    """Where the file of a voice lies in the cache."""
    from labkit.voices import cache_folder, resolve_voice

    return cache_folder() / "llama" / f"{resolve_voice(str(voice)).weights_hash[:16]}-{kind}.gguf"


def build_seconds(file: Path) -> float | None:
    """How long writing a file took, or None when nobody noted it."""
    note = _note(file)
    return float(json.loads(note.read_text())["build_s"]) if note.exists() else None


def write_llama(voice: Path, kind: str) -> Path:
    """Write the GPT of an asset folder to its `model_file`; it appears whole or not at all."""
    import gguf

    from labkit.model.checkpoint import load_gpt

    started = time.perf_counter()
    target = model_file(voice, kind)
    gpt = load_gpt(voice, decoding_layout=False)
    config = gpt.config
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.part")
    writer = gguf.GGUFWriter(str(partial), "llama")
    try:
        writer.add_context_length(config.positions)
        writer.add_embedding_length(config.hidden)
        writer.add_block_count(config.layers)
        writer.add_feed_forward_length(config.intermediate)
        writer.add_head_count(config.heads)
        writer.add_head_count_kv(config.heads)
        writer.add_rope_dimension_count(config.head_dim)
        writer.add_layer_norm_rms_eps(config.norm_eps)
        codes = config.num_codebooks * config.num_code_tokens
        writer.add_vocab_size(codes)
        _add_vocabulary(writer, codes)
        _add_tensors(writer, gpt, kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
    _note(target).write_text(json.dumps({"build_s": round(time.perf_counter() - started, 3)}) + "\n")
    os.replace(partial, target)
    return target


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def step_weight_bytes(kind: str, *, layers: int, hidden: int, intermediate: int, head_rows: int) -> int:
    """Bytes of the weights that one step reads."""
    matrices = layers * (4 * hidden**2 + 3 * hidden * intermediate)
    return round(matrices * _BYTES_OF_A_BLOCK[kind] + 4 * head_rows * hidden)


def _add_vocabulary(writer: Any, codes: int) -> None:
    """Tokens that no text is ever made of; the server wants to have some, those of single bytes among them."""
    import gguf

    writer.add_tokenizer_model("llama")
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(_BYTE_TOKENS))]
    names = (names + [f"code{i}" for i in range(codes)])[:codes]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * _BYTE_TOKENS]
    kinds = (kinds + [gguf.TokenType.NORMAL] * codes)[:codes]
    writer.add_token_list(names)
    writer.add_token_scores([0.0] * codes)
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _add_tensors(writer: Any, gpt: Gpt, kind: str) -> None:
    import gguf

    quantized = getattr(gguf.GGMLQuantizationType, kind)

    def vector(name: str, weight: Any) -> None:
        writer.add_tensor(f"{name}.weight", _numpy(weight))

    def matrix(name: str, weight: Any) -> None:
        blocks = gguf.quants.quantize(_numpy(weight), quantized)
        writer.add_tensor(f"{name}.weight", blocks, raw_dtype=quantized)

    vector("token_embd", gpt.code_embedding.weight)
    vector("output", gpt.code_head.weight)
    vector("output_norm", gpt.norm.weight)
    for i, layer in enumerate(cast("list[Layer]", list(gpt.layers))):
        vector(f"blk.{i}.attn_norm", layer.attention_norm.weight)
        vector(f"blk.{i}.ffn_norm", layer.mlp_norm.weight)
        for name, part in zip("qkv", layer.qkv.weight.chunk(3), strict=True):
            matrix(f"blk.{i}.attn_{name}", part)
        matrix(f"blk.{i}.attn_output", layer.out.weight)
        for name, part in zip(("gate", "up"), layer.gate_up.weight.chunk(2), strict=True):
            matrix(f"blk.{i}.ffn_{name}", part)
        matrix(f"blk.{i}.ffn_down", layer.down.weight)


def _numpy(tensor: Any) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().contiguous().numpy()
    return array
