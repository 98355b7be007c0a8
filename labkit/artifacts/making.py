"""How each artifact is made: from a voice's weights to files, through export and quantizer; `comparing` checks them.

This is the only caller of `labkit.export` and `labkit.quantize`. Everything here is heavy (torch, onnx) and runs in the
making process, never in one that is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from labkit.artifacts.comparing import compare_made, input_kind
from labkit.artifacts.files import ArtifactFolder
from labkit.artifacts.plans import Plan, plan_stage
from labkit.export.options import GPT_OPTIONS, VOCODER_OPTIONS
from labkit.spec import StageChoice

if TYPE_CHECKING:
    from labkit.voices import Voice

Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Job:
    plan: Plan
    voice: Voice
    audio_path: str
    store: ArtifactFolder
    progress: Progress

    def say(self, what: str) -> None:
        self.progress(f"{self.plan.stage} {self.plan.choice.engine} {self.plan.choice.precision}: {what}")


def make(
    plan: Plan, voice: Voice, audio_path: str, store: ArtifactFolder, progress: Progress
) -> dict[str, Any]:
    """Make the artifact of a plan unless it is there by now; returns its manifest.

    ParityError when its numbers are wrong: then nothing is kept.
    """
    job = _Job(plan, voice, audio_path, store, progress)
    with store.lock(plan.content_hash):
        manifest, problem = store.find(plan.content_hash)
        if manifest is not None:
            return manifest
        if problem:
            job.say(f"the cached artifact is damaged: {problem}; making it again")
        with store.filling(plan.content_hash) as folder:
            details, seconds = _MAKERS[plan.maker](job, folder)
            job.say("comparing with torch")
            started = time.perf_counter()
            figures = compare_made(plan, voice, audio_path, folder, details)
            seconds["parity"] = time.perf_counter() - started
            job.say("keeping it")
            manifest = {
                "stage": plan.stage,
                "choice": plan.choice.model_dump(mode="json"),
                "inputs": plan.inputs,
                "seconds": {name: round(value, 3) for name, value in seconds.items()},
                "details": {**details, "parity": [figure.as_dict() for figure in figures]},
                "note": f"made again: {problem}" if problem else "",
            }
            return store.publish(plan.content_hash, folder, manifest)


def _export_gpt(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    from labkit.export.gpt_onnx import MODEL_FILE, ROPE_TABLES, export_gpt
    from labkit.export.gpt_portable import export_portable_gpt
    from labkit.export.graph import weight_bytes
    from labkit.model.checkpoint import load_gpt

    job.say("exporting")
    started = time.perf_counter()
    export = export_portable_gpt if job.plan.make_options["graph"] == "portable" else export_gpt
    details = export(load_gpt(job.voice.folder), folder)
    check_model(folder / MODEL_FILE)
    details["step_weights_bytes"] = weight_bytes(folder / MODEL_FILE, except_for=ROPE_TABLES)
    details["speaker_token"] = job.plan.speaker_token
    return details, {"export": time.perf_counter() - started}


def _export_openvino_gpt(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    from labkit.export.gpt_openvino import export_openvino_gpt
    from labkit.model.checkpoint import load_gpt
    from labkit.quantize.openvino_weights import rounding

    job.say("exporting")
    started = time.perf_counter()
    precision, options = job.plan.choice.precision, job.plan.make_options
    bits = {"int8-weight": 8, "int4-weight": 4}.get(precision)
    details = export_openvino_gpt(
        load_gpt(job.voice.folder),
        folder,
        bfloat16=precision == "bf16",
        rounding=rounding(bits, options, job.say) if bits else None,
    )
    details |= {**options, "speaker_token": job.plan.speaker_token}
    return details, {"export": time.perf_counter() - started}


def _export_network(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    from labkit.export.networks_onnx import MODEL_FILE, export_network
    from labkit.model import checkpoint

    job.say("exporting")
    started = time.perf_counter()
    loaders = {
        "hidden": checkpoint.load_decoder,
        "codes": checkpoint.load_dvae,
        "mel": checkpoint.load_vocoder,
    }
    kind = input_kind(job.plan.stage, job.audio_path)
    port = "mel-spectrum" if job.plan.make_options.get("inverse_stft") == "numpy" else kind
    details = export_network(loaders[kind](job.voice.folder), port, job.voice.config, folder)
    check_model(folder / MODEL_FILE)
    return details, {"export": time.perf_counter() - started}


def _quantize_gpt(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Quantize the products of the exported GPT."""
    from labkit.export.gpt_onnx import HEAD_NODE, MODEL_FILE, ROPE_TABLES
    from labkit.export.graph import weight_bytes
    from labkit.quantize.dynamic import quantize_gpt_dynamic
    from labkit.quantize.static import quantize_static
    from labkit.quantize.weight_only import check_block, quantize_weights

    options, gpt = job.plan.make_options, job.voice.config.gpt
    if "block_size" in options:  # told before the export, which takes minutes at full size
        check_block(int(options["block_size"]), {"every layer": gpt.hidden, "down": gpt.intermediate})
    source, manifest = _exact(job)
    job.say("quantizing")
    started = time.perf_counter()
    feeds = _calibration_inputs(job, manifest["details"])  # nothing is spoken unless they are read
    if job.plan.choice.precision == "int8-dynamic":
        details = quantize_gpt_dynamic(source, folder, MODEL_FILE, HEAD_NODE, options, feeds, job.say)
    elif job.plan.choice.precision == "int8-static":
        details = quantize_static(source, folder, MODEL_FILE, HEAD_NODE, feeds, options, job.say)
    else:
        bits = {"int8-weight": 8, "int4-weight": 4}[job.plan.choice.precision]
        details = quantize_weights(source, folder, MODEL_FILE, HEAD_NODE, bits, options, feeds, job.say)
    check_model(folder / MODEL_FILE)
    seconds = {"export": manifest["seconds"]["export"], "quantize": time.perf_counter() - started}
    details["step_weights_bytes"] = weight_bytes(folder / MODEL_FILE, except_for=ROPE_TABLES)
    return {**manifest["details"], **details}, seconds


def _quantize_network(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Quantize the products of an exported decoder or vocoder; the vocoder's last one stays in float32."""
    from labkit.export.networks_onnx import MODEL_FILE, VOCODER_HEAD
    from labkit.quantize.dynamic import quantize_network

    source, manifest = _exact(job)
    job.say("quantizing")
    started = time.perf_counter()
    head = VOCODER_HEAD if job.plan.stage == "vocoder" else ""
    details = quantize_network(source, folder, MODEL_FILE, head, job.plan.make_options)
    check_model(folder / MODEL_FILE)
    seconds = {"export": manifest["seconds"]["export"], "quantize": time.perf_counter() - started}
    return {**manifest["details"], **details}, seconds


def _halve(job: _Job, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """fp16 of an exported stage, but for what overflows on recorded inputs and what must not be rounded."""
    from labkit.artifacts.recorded import half_set, stage_inputs
    from labkit.export.gpt_onnx import ROPE_TABLES
    from labkit.export.graph import weight_bytes
    from labkit.export.kept import kept_exact
    from labkit.quantize.half import halve

    source, manifest = _exact(job)
    job.say("converting to fp16")
    started = time.perf_counter()
    stage, recorded = job.plan.stage, half_set(job.voice, job.audio_path)

    feeds = partial(stage_inputs, recorded, stage, manifest["details"], job.progress)
    (model,) = (name for name in manifest["files"] if name.endswith(".onnx"))
    details = halve(source, folder, model, feeds, kept_exact(stage, source / model), job.say)
    check_model(folder / model)
    if stage == "gpt":
        details["step_weights_bytes"] = weight_bytes(folder / model, except_for=ROPE_TABLES)
    seconds = {"export": manifest["seconds"]["export"], "convert": time.perf_counter() - started}
    return {**manifest["details"], **details}, seconds


def _exact(job: _Job) -> tuple[Path, dict[str, Any]]:
    """The folder and the manifest of the same stage in fp32, made when it is not there."""
    of_export = {**GPT_OPTIONS, **VOCODER_OPTIONS}
    options = {name: value for name, value in job.plan.make_options.items() if name in of_export}
    exact = StageChoice(engine=job.plan.choice.engine, precision="fp32", options=options)
    base = plan_stage(job.plan.stage, exact, job.voice, job.audio_path)
    manifest = make(base, job.voice, job.audio_path, job.store, job.progress)
    return job.store.path(base.content_hash), manifest


def _calibration_inputs(job: _Job, details: Mapping[str, Any]) -> Iterator[dict[str, NDArray[Any]]]:
    """The exported GPT's inputs for each sentence; the list is looked at when the first of them is asked for."""
    from labkit.artifacts.recorded import stage_inputs
    from labkit.calibration import calibration_set

    sentences = calibration_set(job.voice, sentences=int(job.plan.make_options["sentences"]))
    yield from stage_inputs(sentences, "gpt", details, job.progress)


_MAKERS: dict[str, Callable[[_Job, Path], tuple[dict[str, Any], dict[str, float]]]] = {
    "export-gpt": _export_gpt,
    "export-network": _export_network,
    "openvino-gpt": _export_openvino_gpt,
    "halve-gpt": _halve,
    "halve-network": _halve,
    "quantize-gpt-dynamic": _quantize_gpt,
    "quantize-network-dynamic": _quantize_network,
    "quantize-gpt-static": _quantize_gpt,
    "quantize-gpt-int8-weight": _quantize_gpt,
    "quantize-gpt-int4-weight": _quantize_gpt,
}


def check_model(model: Path) -> None:
    """onnx's own checker, with shape inference as far as it knows the operators."""
    import onnx

    onnx.checker.check_model(str(model), full_check=True)
