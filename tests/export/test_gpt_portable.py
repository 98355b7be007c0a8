from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE
from labkit.export.gpt_portable import export_portable_gpt
from labkit.model.checkpoint import load_gpt
from labkit.model.gpt import Gpt
from labkit.voices import Voice


@pytest.fixture(scope="module")
def gpt(tiny_voice: Voice) -> Gpt:
    return load_gpt(tiny_voice.folder)


@pytest.fixture(scope="module")
def folder(gpt: Gpt, tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("portable")
    details = export_portable_gpt(gpt, folder)
    assert (details["graph"], details["layers"]) == ("portable", gpt.config.layers)
    return folder


def run(session: onnxruntime.InferenceSession, given: torch.Tensor, padding: list[int], past: dict[str, Any]):
    names = [value.name for value in session.get_outputs()]
    feeds = {"embeddings": given.numpy(), "padding": np.array(padding), **past}
    made = dict(zip(names, session.run(None, feeds), strict=True))
    return made, {name.replace("present", "past"): made[name] for name in names if "present" in name}


@pytest.mark.parametrize(("lengths", "steps"), [((1,), 2), ((3, 7, 1), 4), ((250,), 5)])
def test_prompts_and_steps_equal_torch_at_any_size(gpt: Gpt, folder: Path, lengths, steps: int) -> None:
    """The largest case fills every position of the voice but one."""
    config = gpt.config
    session = onnxruntime.InferenceSession(str(folder / MODEL_FILE), providers=["CPUExecutionProvider"])
    batch, longest = len(lengths), max(lengths)
    padding = [longest - length for length in lengths]
    mask = torch.arange(longest)[None] >= torch.tensor(padding)[:, None]
    generator = torch.Generator().manual_seed(0)
    given = torch.randn(batch, longest, config.hidden, generator=generator)
    empty = np.zeros((batch, config.heads, 0, config.head_dim), np.float32)
    past = {f"past_{kind}_{i}": empty for kind in ("key", "value") for i in range(config.layers)}
    cache = gpt.new_cache(batch, longest + steps)
    with torch.inference_mode():
        wanted = gpt.prefill(given, mask, cache)
        made, past = run(session, given, padding, past)
        for _ in range(steps):
            np.testing.assert_allclose(made["hidden"], wanted.numpy(), atol=2e-5)
            logits = gpt.code_logits(wanted).flatten(1)
            np.testing.assert_allclose(made["logits"], logits.numpy(), atol=2e-5)
            codes = torch.randint(0, 625, (batch, 4), generator=generator)
            wanted = gpt.step(codes, cache)
            made, past = run(session, gpt.embed_codes(codes)[:, None], padding, past)
    assert made["present_key_0"].shape == (batch, config.heads, longest + steps, config.head_dim)


def test_operators_are_standard_and_shapes_symbolic(folder: Path) -> None:
    onnx.checker.check_model(str(folder / MODEL_FILE), full_check=True)
    model = onnx.load(folder / MODEL_FILE, load_external_data=False)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 18)]
    assert {node.domain for node in model.graph.node} == {""}
    assert HEAD_NODE in {node.name for node in model.graph.node}
    shapes = {value.name: [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
              for value in (*model.graph.input, *model.graph.output)}  # fmt: skip
    assert shapes["embeddings"] == ["batch", "tokens", 48]
    assert shapes["past_value_1"] == ["batch", 4, "past", 12]
    assert shapes["present_value_1"] == ["batch", 4, "total", 12]
