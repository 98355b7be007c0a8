"""fp16 of an exported graph: which nodes half precision would spoil, found on real inputs, and the conversion.

A node keeps float32 when the caller says so, or when a number it reads or writes comes within a factor of four of
half precision's largest, 65504, on the recorded inputs. Arrays that cross a stage's border keep their types; the GPT's
cache, which stays inside, becomes float16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labkit.errors import ArtifactError, CalibrationError
from labkit.quantize.half_conversion import LARGEST, convert, lift_constants
from labkit.quantize.onnx_files import save
from labkit.quantize.sessions import Feed, open_session, typed

if TYPE_CHECKING:
    import onnx

Feeds = Callable[[], Iterable[Feed]]
"""Gives the recorded inputs from the start, each time it is called."""
Tell = Callable[[str], None]

SENTENCES = 16
"""Of a calibration list. Largest magnitudes settle after a few; `_HEADROOM` is for what was not said."""
_HEADROOM = 4.0
_ROUNDS = 3
_LISTED = 8


def halve(
    source: Path, folder: Path, model: str, feeds: Feeds, keep: Mapping[str, str], tell: Tell
) -> dict[str, Any]:
    """Convert `source/model` into `folder`, which is for it alone; returns what the manifest records.

    `feeds`: complete inputs of the graph. `keep`: nodes that stay in float32 whatever they carry, and why.
    CalibrationError when there is no feed, ArtifactError when a number is not finite in spite of all.
    """
    import onnx

    exact = onnx.load(source / model)
    lift_constants(exact)
    tell("looking for what half precision cannot hold")
    largest = magnitudes(source / model, feeds())
    kept = {**_too_large(exact, largest), **keep}
    for _ in range(_ROUNDS):
        converted = onnx.ModelProto.FromString(exact.SerializeToString())
        convert(converted, set(largest), set(kept))
        for file in folder.iterdir():  # a second round would be added to the data of the first
            file.unlink()
        save(converted, folder / model)
        overflowed = _not_finite(folder / model, feeds())
        if not overflowed:
            break
        kept |= overflowed
    else:
        raise ArtifactError(
            f"fp16 of {model}: {', '.join(list(overflowed)[:_LISTED])} still overflow; use fp32 or bf16."
        )
    top = sorted(largest, key=lambda name: largest[name], reverse=True)[:_LISTED]
    return {
        "kept_in_fp32": {
            why: [name for name in kept if kept[name] == why] for why in sorted(set(kept.values()))
        },
        "kept_nodes": len(kept),
        "all_nodes": len(exact.graph.node),
        "largest_magnitudes": {name: largest[name] for name in top},
        "recorded_inputs": sum(1 for _ in feeds()),
        "against_fp32_on_recorded_inputs": differences(source / model, folder / model, feeds()),
        "cache_type": "float16",
    }


def magnitudes(model: Path, feeds: Iterable[Feed]) -> dict[str, float]:
    """The largest magnitude of every float32 tensor that the graph's nodes make, over all feeds."""
    import onnx

    names = [
        name for node in onnx.load(model, load_external_data=False).graph.node for name in node.output if name
    ]
    session = open_session(model, names)
    found: dict[str, float] = {}
    for feed in feeds:
        for name, values in zip(names, session.run(names, typed(session, feed)), strict=True):
            if values.dtype == np.float32:
                found[name] = max(found.get(name, 0.0), float(np.abs(values).max(initial=0.0)))
    if not found:
        raise CalibrationError("fp16: there is no recorded input to look for overflow on.")
    return found


def _too_large(model: onnx.ModelProto, largest: Mapping[str, float]) -> dict[str, str]:
    """Nodes that read or write a number too near to half precision's largest, and which."""
    import onnx

    sizes = dict(largest)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            sizes[tensor.name] = float(np.abs(onnx.numpy_helper.to_array(tensor)).max(initial=0.0))
    return {
        node.name: "overflow"
        for node in model.graph.node
        if any(not sizes.get(name, 0.0) * _HEADROOM <= LARGEST for name in (*node.input, *node.output))
    }


def _not_finite(model: Path, feeds: Iterable[Feed]) -> dict[str, str]:
    """Nodes of the converted graph that make a number which is not finite."""
    import onnx

    makers = {
        name: node.name
        for node in onnx.load(model, load_external_data=False).graph.node
        for name in node.output
        if name
    }
    session = open_session(model, list(makers))
    found: dict[str, str] = {}
    for feed in feeds:
        for name, values in zip(makers, session.run(list(makers), typed(session, feed)), strict=True):
            if values.dtype == np.float16 and not np.isfinite(values).all():
                found[makers[name]] = "overflow in fp16"
    return found


def differences(exact: Path, other: Path, feeds: Iterable[Feed]) -> dict[str, dict[str, float]]:
    """For each output that is float32 in both graphs: largest absolute difference and least cosine over the feeds.

    ArtifactError for an output that is not finite: no figure would tell it.
    """
    sessions = [open_session(path) for path in (exact, other)]
    floats = [{o.name for o in session.get_outputs() if o.type == "tensor(float)"} for session in sessions]
    names = sorted(floats[0] & floats[1])
    found = {name: {"max_abs": 0.0, "least_cosine": 1.0} for name in names}
    for feed in feeds:
        results = [session.run(names, typed(session, feed)) for session in sessions]
        for name, wanted, made in zip(names, *results, strict=True):
            if not (np.isfinite(wanted).all() and np.isfinite(made).all()):
                raise ArtifactError(f"{other.name}: output {name} is not finite on a recorded input.")
            a, b = wanted.ravel().astype(np.float64), made.ravel().astype(np.float64)
            norms = np.linalg.norm(a) * np.linalg.norm(b)
            figures = found[name]
            figures["max_abs"] = max(figures["max_abs"], float(np.abs(a - b).max(initial=0.0)))
            figures["least_cosine"] = min(figures["least_cosine"], float(a @ b / norms) if norms else 1.0)
    return found
