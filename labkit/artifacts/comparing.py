"""New files in the engine that will run them, beside the voice in torch fp32, driven as synthesis drives them.

It knows plans and engines; which figures are good enough is `parity`'s. Torch is loaded: not for measured processes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.artifacts.parity import Figure, Kind, check_gpt, check_network, gpt_cases
from labkit.artifacts.plans import Plan, voice_files
from labkit.engines.base import Artifact, get_engine
from labkit.spec import StageChoice, StageName

if TYPE_CHECKING:
    from labkit.voices import Voice

_KINDS: dict[str, Kind] = {"fp32": "exact", "fp16": "half", "bf16": "half", "int4-weight": "coarse"}


def compare_made(
    plan: Plan, voice: Voice, audio_path: str, folder: Path, details: dict[str, Any]
) -> list[Figure]:
    """How far the files in `folder`, with these `details`, are from torch; ParityError when they are too far."""
    made = Artifact(
        stage=plan.stage, choice=plan.choice, folder=folder, files=tuple(file.name for file in folder.iterdir()),
        size_bytes=0, build_s=None, cached=False, content_hash=plan.content_hash, voice_folder=voice.folder,
        details=details,
    )  # fmt: skip
    source = replace(
        made, choice=StageChoice(), folder=voice.folder, files=voice_files(plan.stage, audio_path),
        details={"speaker_token": plan.speaker_token},
    )  # fmt: skip
    kind = _KINDS.get(plan.choice.precision, "quantized")
    reference, candidate = (
        get_engine(each.choice.engine).load(plan.stage, each, device="cpu", threads=1, audio_path=audio_path)
        for each in (source, made)
    )
    if plan.speaker_token is not None:
        gpt = voice.config.gpt
        figures = check_gpt(
            reference, candidate, vocabulary=gpt.num_text_tokens, speaker_token=plan.speaker_token,
            codes=gpt.end_code, width=gpt.hidden, kind=kind,
            cases=gpt_cases(gpt.positions, with_largest=details.get("graph") == "portable"),
        )  # fmt: skip
    else:
        from labkit.export.networks_onnx import example_input

        port = input_kind(plan.stage, audio_path)
        figures = check_network(
            reference, candidate,
            lambda batch, steps: example_input(port, voice.config, batch, steps, seed=1).numpy(),
            stage=plan.stage, output="mel" if plan.stage == "decoder" else "audio", kind=kind,
        )  # fmt: skip
    candidate.close()
    reference.close()
    return figures


def input_kind(stage: StageName, audio_path: str) -> str:
    """What a decoder or a vocoder is fed: `hidden`, `codes` or `mel`."""
    return "mel" if stage == "vocoder" else audio_path
