"""The recipe of the nano voice: every number that makes it what it is, and a smoke preset of the same shape.

Frozen; a stage reads its own part and nothing else. Change a number here and the voice is another voice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from labkit.model.config import NANO, VoiceConfig
from labkit.training.decoder import DecoderStage
from labkit.training.dvae import DvaeStage
from labkit.training.gpt import GptStage
from labkit.training.loop import Pace, Schedule
from labkit.training.vocabulary import TOKENS
from labkit.training.vocoder import VocoderStage


@dataclass(frozen=True)
class DataStage:
    """`voices` are names of the teacher's; `speakers` are what the trained voice calls them, in the same order."""

    voices: tuple[str, ...] = ("jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")
    speakers: tuple[str, ...] = ("gongitsune", "nezumi", "tebukuro", "kumo")
    per_voice: int = 330
    valid: int = 40
    seed: int = 20
    spliced: int = 4000
    splice_seed: int = 21
    copies: int = 6  # of each natural clip, with its frames falling elsewhere
    speaker_seed: int = 7


@dataclass(frozen=True)
class Recipe:
    config: VoiceConfig
    data: DataStage = field(default_factory=DataStage)
    dvae: DvaeStage = field(default_factory=DvaeStage)
    vocoder: VocoderStage = field(default_factory=VocoderStage)
    gpt: GptStage = field(default_factory=GptStage)
    decoder: DecoderStage = field(default_factory=DecoderStage)
    pace: Pace = field(default_factory=Pace)
    teacher: str = "kokoro"  # or "tones", a stand-in that needs no TTS
    threads: int = 1


NANO_RECIPE = Recipe(
    config=replace(
        NANO, gpt=replace(NANO.gpt, layers=5, intermediate=352, num_text_tokens=len(TOKENS)),
    )
)  # fmt: skip


def _short(stage: Any, **changes: Any) -> Any:
    return replace(stage, schedule=replace(stage.schedule, steps=4, warmup=2), batch=4, **changes)


SMOKE_RECIPE = Recipe(
    config=NANO_RECIPE.config,
    data=DataStage(per_voice=12, valid=4, spliced=8, copies=2),
    dvae=_short(DvaeStage(), frames=32),
    vocoder=_short(VocoderStage(), frames=24, polish=Schedule(steps=2, peak=1e-4), discriminated=2),
    gpt=_short(GptStage()),
    decoder=_short(DecoderStage(), steps=12),
    pace=Pace(log_steps=2, validate_steps=4, save_s=1.0),
    teacher="tones",
    threads=1,
)
