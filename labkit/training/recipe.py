"""The recipe of the nano voice: every number that makes it what it is, and a smoke preset of the same shape.

Frozen; a stage reads its own part and nothing else. Change a number here and the voice is another voice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labkit.model.config import NANO, VoiceConfig
from labkit.training.decoder import DecoderStage
from labkit.training.domain_plan import DomainRecipe
from labkit.training.dvae import DvaeStage
from labkit.training.gpt import GptStage
from labkit.training.loop import Pace, Schedule
from labkit.training.speech import DigitsRecipe
from labkit.training.vocabulary import TOKENS
from labkit.training.vocoder import VocoderStage


@dataclass(frozen=True)
class DataStage:
    """The two corpora; `speakers` are what the trained voice calls the teacher's voices, in the same order."""

    digits: DigitsRecipe = field(default_factory=DigitsRecipe)
    domain: DomainRecipe = field(default_factory=DomainRecipe)
    speakers: tuple[str, ...] = ("gongitsune", "nezumi", "tebukuro", "kumo")
    spliced: Mapping[str, int] = field(default_factory=lambda: {"digits": 1500, "domain": 13_000})
    splice_seed: int = 21
    # Of each natural clip, with its frames falling elsewhere. A digit stands five times as often in the speech as
    # most other words and is learned first, so fewer of the digit strings.
    copies: Mapping[str, int] = field(default_factory=lambda: {"digits": 3, "domain": 6})
    # Of a sentence with a pause: too rarely heard, a voice takes the silence in it for the end.
    paused_copies: int = 18
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
    teacher: str = "kokoro"  # or "tones", a stand-in that needs no TTS and that nobody hears


NANO_RECIPE = Recipe(
    config=replace(
        NANO, gpt=replace(NANO.gpt, layers=5, intermediate=352, num_text_tokens=len(TOKENS)),
    )
)  # fmt: skip


def _short(stage: Any, **changes: Any) -> Any:
    return replace(stage, schedule=replace(stage.schedule, steps=4, warmup=2), **changes)


SMOKE_RECIPE = Recipe(
    config=NANO_RECIPE.config,
    data=DataStage(
        digits=DigitsRecipe(per_voice=12, valid=4),
        domain=DomainRecipe(items=48, valid=3),
        spliced={"digits": 4, "domain": 4},
        copies={"digits": 2, "domain": 2},
        paused_copies=3,
    ),
    dvae=_short(DvaeStage(), batch=4, frames=32),
    vocoder=_short(
        VocoderStage(),
        frames=24,
        rows={"dvae": 2, "real": 2},
        tune_rows={"decoder": 2, "dvae": 1, "real": 1},
        polish=Schedule(steps=2, peak=1e-4),
        tune=Schedule(steps=2, peak=1e-4),
    ),
    gpt=_short(GptStage(), batch=4),
    decoder=_short(DecoderStage(), batch=4, steps=12),
    pace=Pace(log_steps=2, validate_steps=4, save_s=1.0),
    teacher="tones",
)
