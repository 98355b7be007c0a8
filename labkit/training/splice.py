"""More strings for free: the head of one utterance joined to the tail of another, same voice, at aligned boundaries.

The tail is taken where its preceding word is the head's last word, so the joint has heard that neighbour before, and
its pace is the head's. The cut moves to the quietest place near the boundary and is crossfaded. Splices teach order;
natural speech teaches how it should sound, so it must stay the majority late in training.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labkit.training.align import Boundaries
from labkit.training.corpus import SAMPLE_RATE, Clip, Item
from labkit.training.pace import speed_token

FADE_S = 0.008
SEARCH_S = 0.03
MAX_WORDS = 10


@dataclass(frozen=True)
class Spoken:
    """A clip with the boundaries of its words; texts with inner marks or control tokens are not spliced."""

    clip: Clip
    words: tuple[str, ...]
    boundaries: tuple[tuple[float, float], ...]


def quiet_cut(audio: np.ndarray, seconds: float) -> int:
    """The sample within SEARCH_S of `seconds` whose 5 ms surroundings carry the least energy."""
    half, window = int(SEARCH_S * SAMPLE_RATE), int(0.005 * SAMPLE_RATE)
    centre = int(seconds * SAMPLE_RATE)
    start = max(window, centre - half)
    candidates = range(start, max(start + 1, min(len(audio) - window, centre + half)), window // 2)
    energy = [float(np.square(audio[c - window : c + window]).sum()) for c in candidates]
    return candidates[int(np.argmin(energy))]


def join(head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Two waves with a linear crossfade of FADE_S."""
    fade = min(int(FADE_S * SAMPLE_RATE), len(head), len(tail))
    ramp = np.linspace(0.0, 1.0, fade, dtype=np.float32)
    middle = head[len(head) - fade :] * (1 - ramp) + tail[:fade] * ramp
    return np.concatenate([head[: len(head) - fade], middle, tail[fade:]])


def _manner(spoken: Spoken) -> tuple[str, str]:
    """Voice and pace: what the two halves of a splice must share."""
    return spoken.clip.item.voice, speed_token(spoken.clip.item.tempo)


def splice(
    clips: Sequence[Clip],
    boundaries: Mapping[int, Boundaries],
    forbidden: Container[tuple[str, ...]],
    count: int,
    seed: int,
) -> Iterator[tuple[Clip, Boundaries]]:
    """`count` new utterances of strings that are neither in `forbidden` nor among the clips' own."""
    rng = random.Random(seed)
    pool = [
        Spoken(clip, tuple(clip.item.words), tuple(boundaries[clip.item.index]))
        for clip in clips
        if clip.item.index in boundaries and not set(",[") & set(clip.item.text) and len(clip.item.words) > 1
    ]
    if not pool:
        return
    joints = defaultdict(list)  # (voice, pace, word before the cut) -> places where a tail can start
    for spoken in pool:
        for cut in range(1, len(spoken.words)):
            joints[(*_manner(spoken), spoken.words[cut - 1])].append((spoken, cut))
    taken = {(clip.item.voice, tuple(clip.item.words)) for clip in clips}
    made = 0
    for _ in range(count * 20):
        if made == count:
            break
        head = rng.choice(pool)
        voice, cut = head.clip.item.voice, rng.randrange(1, len(head.words))
        tail, start = rng.choice(joints[(*_manner(head), head.words[cut - 1])])
        words = (*head.words[:cut], *tail.words[start:])
        if len(words) > MAX_WORDS or words in forbidden or (voice, words) in taken:
            continue
        taken.add((voice, words))
        left = quiet_cut(head.clip.audio, head.boundaries[cut][0])
        right = quiet_cut(tail.clip.audio, tail.boundaries[start][0])
        audio = join(head.clip.audio[:left], tail.clip.audio[right:])
        shift = (left - right) / SAMPLE_RATE - FADE_S
        times = [*head.boundaries[:cut], *((a + shift, b + shift) for a, b in tail.boundaries[start:])]
        item = Item(1_000_000 + made, voice, "spliced", " ".join(words), head.clip.item.tempo)
        made += 1
        yield Clip(item, audio), [(max(0.0, a), b) for a, b in times]
