"""Utterances as the GPT reads them: prompt ids, the four code streams of the trained DVAE, where words start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.model.dvae import Dvae
from labkit.training.align import Boundaries
from labkit.training.corpus import SAMPLE_RATE, SAMPLES_PER_STEP, Clip
from labkit.training.dvae import mel_of
from labkit.training.vocabulary import prompt_ids, word_positions


@dataclass(frozen=True)
class Utterance:
    """What the GPT is taught. codes: [T, 4] int64; starts: the step at which each word begins, None when unknown."""

    text: str
    voice: str
    split: str
    ids: list[int]
    words_at: list[int]  # positions of the words in ids
    codes: Tensor
    starts: list[int] | None


def encode(dvae: Dvae, clips: Iterable[tuple[Clip, Boundaries | None]]) -> list[Utterance]:
    """Encode clips with the frozen DVAE."""
    utterances = []
    with torch.no_grad():
        for clip, boundaries in clips:
            codes = dvae.encode(mel_of(clip)[None])[0]
            starts = None
            if boundaries is not None:
                starts = [int(a * SAMPLE_RATE / SAMPLES_PER_STEP) for a, _ in boundaries]
            item = clip.item
            utterances.append(
                Utterance(
                    item.text,
                    item.voice,
                    item.split,
                    prompt_ids(item.text, item.tempo),
                    word_positions(item.text),
                    codes,
                    starts,
                )
            )
    return utterances
