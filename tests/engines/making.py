"""Artifacts of a test's own making, and the stages that engines load from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labkit.engines.base import Artifact, get_engine
from labkit.spec import Option, StageChoice, StageName

SPEAKER_TOKEN = 7


def artifact(
    engine: str,
    stage: StageName,
    folder: Path,
    voice: Path,
    details: Mapping[str, Any],
    *,
    precision: str = "fp32",
    options: Mapping[str, Option] | None = None,
) -> Artifact:
    """What lies in `folder`, as if the lab had made it."""
    choice = StageChoice.model_validate(
        {"engine": engine, "precision": precision, "options": dict(options or {})}
    )
    return Artifact(
        stage=stage, choice=choice, folder=folder, files=tuple(file.name for file in folder.iterdir()), size_bytes=0,
        build_s=None, cached=True, content_hash="", voice_folder=voice,
        details={"speaker_token": SPEAKER_TOKEN, "step_weights_bytes": 1000, **details},
    )  # fmt: skip


def load(made: Artifact, device: str = "cpu") -> Any:
    """The stage on one thread, of the audio path through hidden states."""
    return get_engine(made.choice.engine).load(
        made.stage, made, device=device, threads=1, audio_path="hidden"
    )
