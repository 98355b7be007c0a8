"""Exported graphs to quantize."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.export.gpt_onnx import export_gpt
from labkit.model.checkpoint import load_gpt
from labkit.voices import Voice


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
