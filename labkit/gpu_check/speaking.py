"""A voice loaded for a case, the fixed prompts, and what it answers to them; no tokenizer and no recipe is needed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from labkit.engines.base import Artifact, StepOutput, get_engine
from labkit.gpu_check.cases import Choice, Work
from labkit.gpu_check.parity import Answers
from labkit.model.config import VoiceConfig
from labkit.synthesis import Prepared, Request, speak
from labkit.text.normalize import NormalizationReport


def load_stages(choices: dict[str, Choice], voice: Path, device: str, threads: int) -> Any:
    """The three stages as `labkit.synthesis.Stages`; the artifacts are the voice's own files."""
    loaded = {}
    for stage, choice in choices.items():
        artifact = Artifact(
            stage=stage,  # type: ignore[arg-type]
            choice=choice,  # type: ignore[arg-type]  # the same three fields
            folder=voice, files=(), size_bytes=0, build_s=0.0, cached=False, content_hash="", voice_folder=voice,
            details={"speaker_token": 0},  # no row has a speaker
        )  # fmt: skip
        engine = get_engine(choice.engine)
        loaded[stage] = engine.load(stage, artifact, device=device, threads=threads, audio_path="hidden")  # type: ignore[arg-type]
    return SimpleNamespace(
        **loaded,
        voice=SimpleNamespace(config=VoiceConfig.from_folder(voice), name=str(voice)),
        audio_path="hidden",
    )


def prepared(stages: Any, work: Work, batch: int) -> list[Prepared]:
    """The fixed prompts as rows that need no tokenizer."""
    request = Request("fixed tokens")
    report = NormalizationReport("", "", "en", "digits", ())
    rows = work.rows(batch, stages.voice.config.gpt.num_text_tokens)
    return [Prepared(request, "fixed tokens", report, ids) for ids in rows]


def answers(stages: Any, work: Work, batch: int) -> Answers:
    """What the GPT says to the first codes, and what decoder and vocoder make of its first row's hidden states."""
    seen: list[StepOutput] = []
    codes = [row[: work.parity_steps] for row in work.codes(batch)]
    spoken = speak(
        stages, prepared(stages, work, batch), replay=codes, observe=lambda _, out: seen.append(out)
    )
    mel = stages.decoder(spoken[0].hidden[None])
    return Answers(
        logits=np.stack([out.logits for out in seen]),
        hidden=np.stack([out.hidden for out in seen]),
        features=spoken[0].hidden,
        mel=mel,
        audio=stages.vocoder(mel),
    )
