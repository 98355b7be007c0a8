"""A voice's graphs in a folder of the user's, each with a manifest: for runtimes that the lab does not drive.

What an engine of the lab could run is made and checked as for a run, in the cache, and copied. The DVAE's encoding
half and fp8 have no engine here: they are made on the spot.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.artifacts import prepare
from labkit.artifacts.exported import Exported, export_table, operator_table, parity_table
from labkit.artifacts.files import MANIFEST, describe_files
from labkit.errors import ParityError, SpecError, UserError
from labkit.export.options import GPT_OPTIONS, VOCODER_OPTIONS
from labkit.spec import STAGES, Recipe, StageName

if TYPE_CHECKING:
    from labkit.engines.base import Artifact
    from labkit.voices import Voice

__all__ = [
    "ENCODER", "PRECISIONS", "Exported", "export_table", "export_voice", "operator_table", "parity_table"
]  # fmt: skip

Progress = Callable[[str], None]
Manifest = dict[str, Any]
PRECISIONS = ("fp32", "fp16", "fp8")
ENCODER = "encoder"
"""The graph beside the stages: log-mel to codes, the DVAE's other direction."""
_EQUAL_CODES = 0.999  # a value between two levels may fall to either side


def export_voice(
    voice: Voice,
    out: Path,
    *,
    graph: str = "portable",
    stages: Sequence[str] = STAGES,
    precision: str = "fp32",
    audio_path: str = "hidden",
    inverse_stft: str = "graph",
    encoder: bool = False,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> list[Exported]:
    """Write a subfolder of `out` for each stage, with the graph and `manifest.json`.

    `graph`: `portable` or `ort`, which differ for the GPT. `audio_path`: what the decoder reads. `encoder` adds the
    DVAE's encoding half. UserError before any work for what cannot be, or for a folder that is not empty.
    """
    _check(graph, stages, precision, inverse_stft)
    _check_folder(out)
    tell = progress or (lambda _: None)
    choices = {
        stage: _choice(stage, graph, "fp32" if precision == "fp8" else precision, inverse_stft)
        for stage in STAGES
        if stage in stages
    }
    recipe = Recipe.model_validate({"name": "export", **choices})
    artifacts = prepare(recipe, voice, audio_path=audio_path, cache=cache, progress=tell)
    makers: dict[str, Callable[[Path], Manifest]] = {}
    for stage in choices:
        artifact = artifacts[stage]
        makers[stage] = partial(_copy, artifact)
        if precision == "fp8":
            makers[stage] = partial(_fp8, voice, artifact, audio_path, tell)
    if encoder:
        makers[ENCODER] = partial(_encoder, voice)
    made = []
    for name, maker in makers.items():
        tell(f"{name}: writing {out / name}")
        made.append(_write(name, out, maker, voice))
    return made


def _check(graph: str, stages: Sequence[str], precision: str, inverse_stft: str) -> None:
    for what, given, known in (
        ("graph", [graph], GPT_OPTIONS["graph"]),
        ("precision", [precision], PRECISIONS),
        ("stage", stages, STAGES),
        ("inverse STFT", [inverse_stft], VOCODER_OPTIONS["inverse_stft"]),
    ):
        if not given:
            raise SpecError(f"export: no {what} was asked for; known: {', '.join(map(str, known))}.")
        for each in given:
            if each not in known:
                raise SpecError(f"export: {what} {each!r} is unknown; known: {', '.join(map(str, known))}.")
    if precision == "fp8" and graph != "portable" and "gpt" in stages:
        raise SpecError("export: fp8 is for other runtimes than ONNX Runtime; ask for the portable graph.")


def _check_folder(out: Path) -> None:
    """UserError for a folder that has something in it, or cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        full = any(out.iterdir())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}; name another folder.") from error
    if full:
        raise UserError(f"{out} is not empty; name another folder, or empty it first.")


def _choice(stage: StageName, graph: str, precision: str, inverse_stft: str) -> dict[str, Any]:
    options = {"gpt": {"graph": graph}, "vocoder": {"inverse_stft": inverse_stft}}.get(stage, {})
    return {"engine": "ort-cpu", "precision": precision, "options": options}


def _write(name: str, out: Path, maker: Callable[[Path], Manifest], voice: Voice) -> Exported:
    """Let a maker fill a folder beside the final one, describe what is in it, and put it in its place."""
    from labkit.export.describe import describe, profiles

    partial_folder = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=out))
    try:
        manifest = maker(partial_folder)
        (model,) = partial_folder.glob("*.onnx")
        manifest |= {
            "voice": voice.name,
            "weights_hash": voice.weights_hash,
            "graph": {"file": model.name, **describe(model)},
            "profiles": profiles(model, voice.config.gpt.positions),
            "files": describe_files(partial_folder),
        }
        (partial_folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        partial_folder.chmod(0o755)
        partial_folder.rename(out / name)
    except OSError as error:
        raise UserError(
            f"{out / name} cannot be written: {error.strerror or error}; name a folder with room."
        ) from error
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)
    return Exported(name, out / name, manifest)


def _copy(artifact: Artifact, folder: Path) -> Manifest:
    for name in artifact.files:
        shutil.copyfile(artifact.folder / name, folder / name)
    return _manifest(artifact)


def _manifest(artifact: Artifact) -> Manifest:
    manifest: Manifest = json.loads((artifact.folder / MANIFEST).read_text(encoding="utf-8"))
    return manifest


def _fp8(voice: Voice, artifact: Artifact, audio_path: str, tell: Progress, folder: Path) -> Manifest:
    """Quantize the fp32 artifact; its figures are those on recorded inputs, beside the fp32 graph."""
    from labkit.artifacts.making import check_model
    from labkit.artifacts.recorded import half_set, stage_inputs
    from labkit.export.kept import kept_exact
    from labkit.quantize.fp8 import quantize_fp8
    from labkit.quantize.half import differences

    started = time.perf_counter()
    manifest = _manifest(artifact)
    recorded = half_set(voice, audio_path)
    (model,) = (name for name in artifact.files if name.endswith(".onnx"))
    feeds = partial(stage_inputs, recorded, artifact.stage, manifest["details"], tell)
    keep = kept_exact(artifact.stage, artifact.folder / model)
    details = quantize_fp8(artifact.folder, folder, model, feeds(), keep)
    check_model(folder / model)
    details["against_fp32_on_recorded_inputs"] = differences(artifact.folder / model, folder / model, feeds())
    old = {name: value for name, value in manifest["details"].items() if name != "parity"}
    return {
        **manifest,
        "choice": {**manifest["choice"], "precision": "fp8"},
        "inputs": {**manifest["inputs"], "precision": "fp8", "recordings": recorded.content_hash},
        "seconds": {**manifest["seconds"], "quantize": round(time.perf_counter() - started, 3)},
        "details": {**old, **details},
    }


def _encoder(voice: Voice, folder: Path) -> Manifest:
    """The DVAE's encoding half, compared with torch code by code."""
    from labkit.artifacts.making import check_model
    from labkit.artifacts.plans import tool_versions
    from labkit.export.networks_onnx import MODEL_FILE, example_input, export_network
    from labkit.model.checkpoint import load_dvae
    from labkit.quantize.sessions import open_session

    started = time.perf_counter()
    dvae = load_dvae(voice.folder)
    details = export_network(dvae, "mel-codes", voice.config, folder)
    check_model(folder / MODEL_FILE)
    exported = time.perf_counter()
    session = open_session(folder / MODEL_FILE)
    figures = []
    for case, batch, steps in (("smallest", 1, 1), ("batch", 3, 25), ("typical", 1, 60), ("long", 1, 300)):
        mel = example_input("mel-codes", voice.config, batch, steps, seed=1)
        equal = float((session.run(None, {"mel": mel.numpy()})[0] == dvae.encode(mel).numpy()).mean())
        if equal < _EQUAL_CODES:
            raise ParityError(
                f"exported encoder: {equal:.1%} of the codes of the {case!r} case equal torch's; nothing was written. "
                "Report the voice and the tool versions."
            )
        figures.append({"case": case, "output": "codes", "equal": equal})
    return {
        "inputs": {"weights_hash": voice.weights_hash, "tools": tool_versions()},
        "seconds": {
            "export": round(exported - started, 3),
            "parity": round(time.perf_counter() - exported, 3),
        },
        "details": {**details, "parity": figures},
    }
