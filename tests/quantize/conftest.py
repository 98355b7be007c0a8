"""Exported graphs to quantize."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.export.gpt_onnx import MODEL_FILE, export_gpt
from labkit.model.checkpoint import load_gpt
from labkit.voices import Voice

Feed = dict[str, np.ndarray]


@pytest.fixture(scope="session")
def exact(tiny_voice: Voice, tmp_path_factory) -> Path:
    """The tiny voice's GPT in fp32; no block size divides its sizes."""
    folder = tmp_path_factory.mktemp("exact")
    export_gpt(load_gpt(tiny_voice.folder), folder)
    return folder


@pytest.fixture(scope="session")
def exact_in_blocks(blocky_voice: Voice, tmp_path_factory) -> Path:
    """A GPT whose products blocks of 32 divide."""
    folder = tmp_path_factory.mktemp("exact-in-blocks")
    export_gpt(load_gpt(blocky_voice.folder), folder)
    return folder


@pytest.fixture
def feeds(tiny_voice: Voice, exact: Path) -> list[Feed]:
    """Two sentences of noise, as complete inputs of `exact`."""
    return _noise(tiny_voice, exact)


@pytest.fixture
def feeds_in_blocks(blocky_voice: Voice, exact_in_blocks: Path) -> list[Feed]:
    return _noise(blocky_voice, exact_in_blocks)


def _noise(voice: Voice, folder: Path) -> list[Feed]:
    config, rng = voice.config.gpt, np.random.default_rng(0)
    inputs = onnx.load(folder / MODEL_FILE, load_external_data=False).graph.input
    head_dim = {value.name: value.type.tensor_type.shape.dim for value in inputs}["past_key_0"][3].dim_value
    return [
        {
            "embeddings": rng.standard_normal((1, length, config.hidden)).astype(np.float32),
            "last_position": np.array([length - 1], np.int32),
            "longest": np.array([length], np.int32),
            "read_at": np.array([[length - 1]], np.int64),
            **{
                f"past_{kind}_{i}": np.zeros((1, config.heads, length, head_dim), np.float32)
                for kind in ("key", "value")
                for i in range(config.layers)
            },
        }
        for length in (3, 20)
    ]
