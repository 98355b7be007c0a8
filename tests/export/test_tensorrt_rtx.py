"""Does NVIDIA's own parser and compiler take the portable graphs?

TensorRT for RTX compiles ahead of time without a GPU. That a graph parses and compiles is evidence that it can be used
with TensorRT, not proof: nothing is run, TensorRT for datacenter cards is another product, and no number is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labkit.export.describe import profiles
from labkit.export.gpt_onnx import MODEL_FILE
from labkit.export.gpt_portable import export_portable_gpt
from labkit.export.kept import kept_exact
from labkit.export.networks_onnx import MODEL_FILE as NETWORK_FILE
from labkit.export.networks_onnx import example_input, export_network
from labkit.model.checkpoint import load_decoder, load_dvae, load_gpt, load_vocoder
from labkit.quantize.fp8 import quantize_fp8
from labkit.quantize.half import halve
from labkit.voices import Voice, resolve_voice

trt = pytest.importorskip("tensorrt_rtx")
pytestmark = pytest.mark.slow

FP8_NEEDS = "SM89"  # the first cards that compute in fp8
LOADERS = {
    "hidden": load_decoder,
    "codes": load_dvae,
    "mel-codes": load_dvae,
    "mel": load_vocoder,
    "mel-spectrum": load_vocoder,
}


@pytest.fixture(scope="module")
def nano() -> Voice:
    return resolve_voice("nano")


@pytest.fixture(scope="module")
def gpt(nano: Voice, tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("gpt")
    export_portable_gpt(load_gpt(nano.folder), folder)
    return folder


def gpt_feeds(voice: Voice) -> Iterator[dict[str, Any]]:
    config = voice.config.gpt
    empty = np.zeros((1, config.heads, 0, config.head_dim), np.float32)
    yield {
        "embeddings": example_input("hidden", voice.config, 1, 20).numpy(),
        "padding": np.zeros(1, np.int64),
        **{f"past_{kind}_{i}": empty for kind in ("key", "value") for i in range(config.layers)},
    }


def compile_ahead(model: Path, positions: int, card: str = "SM80") -> int:
    """Parse a graph, give it its profiles, compile it for a kind of card; the size of what comes out, in bytes."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)  # must outlive the parser
    parser = trt.OnnxParser(network, logger)
    parsed = parser.parse_from_file(str(model))
    problems = [parser.get_error(i) for i in range(parser.num_errors)]
    assert parsed, [
        f"{problem.node_name()} {problem.node_operator()}: {problem.desc()}" for problem in problems
    ]
    config = builder.create_builder_config()
    for shapes in profiles(model, positions).values():
        profile = builder.create_optimization_profile()
        for name, three in shapes.items():
            profile.set_shape(name, *map(tuple, three))
        assert config.add_optimization_profile(profile) >= 0
    config.num_compute_capabilities = 1
    config.set_compute_capability(getattr(trt.ComputeCapability, card), 0)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, f"{model} parses but does not compile"
    return int(plan.nbytes)


def test_the_gpt_compiles_for_prompts_and_steps(nano: Voice, gpt: Path) -> None:
    weights = (gpt / "weights.bin").stat().st_size
    assert compile_ahead(gpt / MODEL_FILE, nano.config.gpt.positions) > 0.9 * weights


@pytest.mark.parametrize("kind", LOADERS)
def test_every_network_compiles(nano: Voice, tmp_path: Path, kind: str) -> None:
    export_network(LOADERS[kind](nano.folder), kind, nano.config, tmp_path)
    assert compile_ahead(tmp_path / NETWORK_FILE, nano.config.gpt.positions) > 100_000


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
def test_the_gpt_compiles_in_lower_precisions(nano: Voice, gpt: Path, tmp_path: Path, precision: str) -> None:
    keep = kept_exact("gpt", gpt / MODEL_FILE)
    make: Callable[[], object] = {
        "fp16": lambda: halve(gpt, tmp_path, MODEL_FILE, lambda: gpt_feeds(nano), keep, lambda line: None),
        "fp8": lambda: quantize_fp8(gpt, tmp_path, MODEL_FILE, gpt_feeds(nano), keep),
    }[precision]
    make()
    card = FP8_NEEDS if precision == "fp8" else "SM80"
    assert compile_ahead(tmp_path / MODEL_FILE, nano.config.gpt.positions, card) > 1_000_000


def test_a_graph_of_onnx_runtimes_own_operators_is_refused(nano: Voice, tmp_path: Path) -> None:
    from labkit.export.gpt_onnx import export_gpt

    export_gpt(load_gpt(nano.folder), tmp_path)
    with pytest.raises(AssertionError, match="GroupQueryAttention"):
        compile_ahead(tmp_path / MODEL_FILE, nano.config.gpt.positions)
