from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch

from labkit.export.gpt_onnx import MODEL_FILE, ROPE_TABLES, export_gpt
from labkit.export.graph import weight_bytes
from labkit.model.config import GptConfig
from labkit.model.gpt import Gpt


def make(tmp_path: Path, hidden: int, heads: int) -> tuple[Gpt, dict]:
    config = GptConfig(
        hidden=hidden,
        intermediate=40,
        heads=heads,
        layers=2,
        positions=64,
        num_text_tokens=30,
        num_code_tokens=20,
    )
    torch.manual_seed(0)
    gpt = Gpt(config)
    gpt.init_weights()
    return gpt, export_gpt(gpt, tmp_path)


@pytest.mark.parametrize(("hidden", "heads", "padded"), [(64, 4, 16), (96, 2, 48), (40, 4, 16), (36, 2, 32)])
def test_every_even_head_size_is_exported_and_the_padding_recorded(tmp_path, hidden, heads, padded) -> None:
    _, details = make(tmp_path, hidden, heads)
    onnx.checker.check_model(str(tmp_path / MODEL_FILE), full_check=True)
    assert details["head_dim"] == padded
    assert details["head_dim_of_the_voice"] == hidden // heads


def test_shapes_stay_symbolic_where_they_vary(tmp_path: Path) -> None:
    make(tmp_path, 64, 4)
    graph = onnx.load(tmp_path / MODEL_FILE, load_external_data=False).graph
    shapes = {value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in (*graph.input, *graph.output)}  # fmt: skip
    assert shapes["embeddings"] == ["batch", "tokens", 64]
    assert shapes["past_key_1"] == shapes["present_value_0"] == ["batch", 4, "capacity", 16]
    assert shapes["logits"] == ["batch", 4 * 20]
    assert {node.name for node in graph.node}.issuperset(
        {"logits.MatMul", "hidden.SkipSimplifiedLayerNormalization"}
    )


def test_weight_bytes_count_what_a_step_reads(tmp_path: Path) -> None:
    gpt, _ = make(tmp_path, 64, 4)
    read = sum(
        p.nbytes for name, p in gpt.named_parameters() if name.startswith(("layers", "norm", "code_head"))
    )
    small_constants = 8 + 4
    assert weight_bytes(tmp_path / MODEL_FILE, except_for=ROPE_TABLES) == read + small_constants
