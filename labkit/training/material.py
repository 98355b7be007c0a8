"""What the networks are taught with, made from the speech: code sequences for the GPT, mels for the vocoder.

Minutes of work for two hours of speech, so nothing is kept on disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labkit.model.dvae import Dvae
from labkit.model.gpt import Gpt
from labkit.training.align import Boundaries
from labkit.training.augment import Aligned, variants
from labkit.training.codes import Utterance, encode
from labkit.training.corpus import Clip, pad_to_steps
from labkit.training.decoder import hidden_states
from labkit.training.domain_plan import PAUSE, HeldOutTexts
from labkit.training.dvae import mel_of
from labkit.training.speech import HeldOut, Speech
from labkit.training.splice import splice
from labkit.training.vocoder import Heard

if TYPE_CHECKING:
    from labkit.training.recipe import DataStage

WordBoundaries = Mapping[int, Boundaries]
"""By the clip's index; a clip that could not be aligned is missing."""


def utterances(
    data: DataStage,
    speech: Speech,
    held_out: HeldOut,
    dvae: Dvae,
    align: Callable[[Sequence[Clip]], WordBoundaries],
) -> tuple[list[Utterance], list[Utterance], list[Utterance]]:
    """(natural, spliced, valid) as codes of the trained DVAE, with word starts."""
    natural, valid = speech.clips("train"), speech.clips("valid")
    boundaries = align((*natural, *valid))
    unspeakable = {tuple(c.item.words) for c in valid} | held_out.words()
    refused = HeldOutTexts([" ".join(words) for words in unspeakable])
    corpora = speech.by_corpus(natural)

    def aligned(clips: list[Clip]) -> list[Aligned]:
        return [(clip, boundaries.get(clip.item.index)) for clip in clips]

    def copied(name: str, clips: list[Clip]) -> Iterator[Aligned]:
        paused = [c for c in clips if PAUSE in c.item.text]
        plain = [c for c in clips if PAUSE not in c.item.text]
        yield from variants(aligned(plain), data.copies[name], data.splice_seed)
        yield from variants(aligned(paused), data.paused_copies, data.splice_seed)

    def joined(name: str, clips: list[Clip]) -> Iterator[Aligned]:
        strings = splice(clips, boundaries, refused, data.spliced[name], data.splice_seed)
        return variants(strings, 1, data.splice_seed)

    return (
        encode(dvae, chain.from_iterable(copied(*corpus) for corpus in corpora.items())),
        encode(dvae, chain.from_iterable(joined(*corpus) for corpus in corpora.items())),
        encode(dvae, aligned(valid)),
    )


class HiddenStates:
    """Teacher-forced hidden states of a GPT, its input codes corrupted for training as for the Decoder."""

    def __init__(self, gpt: Gpt, speakers: Mapping[str, np.ndarray], corrupted: float, seed: int) -> None:
        self._gpt, self._corrupted, self._rng = gpt, corrupted, random.Random(seed)
        self._speakers = {name: torch.from_numpy(vector) for name, vector in speakers.items()}

    def of(self, utterance: Utterance) -> Tensor:
        """[T, hidden]"""
        corrupted = self._corrupted if utterance.split == "train" else 0.0
        return hidden_states(self._gpt, utterance, self._speakers[utterance.voice], self._rng, corrupted)


def heard_clips(
    speech: Speech, dvae: Dvae, states: HiddenStates | None = None
) -> tuple[list[Heard], list[Heard]]:
    """Clips for the vocoder to learn from, and every fourth held-out one; with `states`, hidden states too."""

    def heard(clip: Clip) -> Heard:
        (utterance,) = encode(dvae, [(clip, None)])
        with torch.no_grad():
            mels = {"real": mel_of(clip), "dvae": dvae.decode(utterance.codes[None])[0]}
        hidden = None if states is None else states.of(utterance)
        return Heard(torch.from_numpy(pad_to_steps(clip.audio)), mels, hidden)

    return [heard(c) for c in speech.clips("train")], [heard(c) for c in speech.clips("valid")[::4]]
