from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from labkit.export.networks_onnx import MODEL_FILE, example_input, export_network
from labkit.model.checkpoint import load_decoder, load_dvae, load_vocoder
from labkit.voices import Voice

LOADERS = {"hidden": load_decoder, "codes": load_dvae, "mel": load_vocoder}


@pytest.mark.parametrize("kind", LOADERS)
def test_any_batch_and_length_equals_torch(tiny_voice: Voice, tmp_path: Path, kind: str) -> None:
    network = LOADERS[kind](tiny_voice.folder)
    details = export_network(network, kind, tiny_voice.config, tmp_path)
    onnx.checker.check_model(str(tmp_path / MODEL_FILE), full_check=True)
    session = onnxruntime.InferenceSession(str(tmp_path / MODEL_FILE), providers=["CPUExecutionProvider"])
    assert details["input"] == session.get_inputs()[0].name == kind
    for batch, steps in ((1, 1), (1, 2), (3, 17), (1, 130)):
        given = example_input(kind, tiny_voice.config, batch, steps, seed=steps)
        with torch.inference_mode():
            wanted = network(given).numpy()
        found = session.run(None, {kind: given.numpy()})[0]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, atol=1e-5 if kind == "mel" else 1e-4)


def test_the_inverse_transform_is_inside_and_of_standard_operators(tiny_voice: Voice, tmp_path: Path) -> None:
    export_network(load_vocoder(tiny_voice.folder), "mel", tiny_voice.config, tmp_path)
    model = onnx.load(tmp_path / MODEL_FILE)
    assert [value.name for value in model.graph.output] == ["audio"]
    assert {node.domain for node in model.graph.node} == {""}


def test_examples_are_seeded_and_of_the_right_shape(tiny_voice: Voice) -> None:
    config = tiny_voice.config
    assert torch.equal(*(example_input("hidden", config, 2, 3, seed=5) for _ in range(2)))
    assert not torch.equal(*(example_input("mel", config, 2, 3, seed=seed) for seed in (0, 1)))
    assert example_input("mel", config, 2, 3).shape == (2, 100, 6)
    codes = example_input("codes", config, 2, 50)
    assert codes.shape == (2, 50, 4)
    assert codes.min() >= 0 and codes.max() < 625


@pytest.mark.parametrize(("kind", "method"), [("mel-spectrum", "spectrum"), ("mel-codes", "encode")])
def test_a_part_of_a_network_equals_torch(tiny_voice: Voice, tmp_path: Path, kind: str, method: str) -> None:
    network = (load_vocoder if method == "spectrum" else load_dvae)(tiny_voice.folder)
    export_network(network, kind, tiny_voice.config, tmp_path)
    onnx.checker.check_model(str(tmp_path / MODEL_FILE), full_check=True)
    session = onnxruntime.InferenceSession(str(tmp_path / MODEL_FILE), providers=["CPUExecutionProvider"])
    for batch, steps in ((1, 1), (3, 17), (1, 130)):
        given = example_input(kind, tiny_voice.config, batch, steps, seed=steps)
        with torch.inference_mode():
            wanted = getattr(network, method)(given)
        found = session.run(None, {"mel": given.numpy()})
        for mine, other in zip(found, wanted if method == "spectrum" else [wanted], strict=True):
            assert mine.shape == tuple(other.shape)
            np.testing.assert_allclose(mine, other.numpy(), atol=1e-5, rtol=1e-3)
