"""What the nano voice is taught to say: a fixed plan of digit strings, and the shards that hold their speech.

Knows the plan (which text, which voice, which split: a pure function of a seed), how a clip is trimmed, levelled and
checked, and how clips lie on disk. Does not know the networks. Held-out digit strings never occur in training, in any
voice and however their commas fall: the plan draws them first and refuses them later.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

SAMPLE_RATE = 24_000
SAMPLES_PER_STEP = 512  # one decode step = two mel frames of hop 256
VOICES = ("jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")  # the teacher's names
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PUNCTUATION = (",", ".")
# One entry per ticket in the draw: long strings teach order, short ones are what people type first.
TRAIN_LENGTHS = (1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 6, 6, 6)
HELD_OUT_LENGTHS = (2, 3, 3, 4, 4, 5, 5, 6)
COMMA_SHARE = 0.2
FULL_STOP_SHARE = 0.15
TEMPO_SPREAD = 0.05


@dataclass(frozen=True)
class Item:
    """One utterance to be spoken: `text` is what the voice reads, words separated by blanks, marks attached."""

    index: int
    voice: str
    split: str
    text: str
    tempo: float

    @property
    def words(self) -> list[str]:
        return words_of(self.text)


def _punctuate(words: Sequence[str], rng: random.Random) -> str:
    marked = list(words)
    if len(words) >= 3 and rng.random() < COMMA_SHARE:
        for position in rng.sample(range(1, len(words)), 1 if len(words) < 5 else rng.choice((1, 1, 2))):
            marked[position - 1] += ","
    text = " ".join(marked)
    return f"{text}." if rng.random() < FULL_STOP_SHARE else text


def read_texts(paths: Sequence[Path]) -> list[str]:
    """The lines of corpus files, without blank lines and comments."""
    lines = (line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def words_of(text: str) -> list[str]:
    """The words of a text without punctuation and control tokens."""
    parts = (part.strip(",.") for part in text.split() if not part.startswith("["))
    return [word for word in parts if word]


def edit_distance(said: Sequence[str], heard: Sequence[str]) -> int:
    """Word substitutions, insertions and deletions (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said):
        above = row
        row = [i + 1]
        for j, other in enumerate(heard):
            row.append(min(above[j] + (word != other), above[j + 1] + 1, row[j] + 1))
    return row[-1]


def deal(texts: Sequence[str], speakers: Sequence[str]) -> list[tuple[str, str]]:
    """Each text with its speaker: in turn, one further each round, so that a text list's own rhythm evens out."""
    count = len(speakers)
    return [(text, speakers[(i + i // count) % count]) for i, text in enumerate(texts)]


def plan(
    voices: Sequence[str],
    per_voice: int,
    test: Sequence[str],
    forbidden: Sequence[str],
    valid: int,
    seed: int,
) -> list[Item]:
    """The corpus as a list: `test` texts first, then `valid` strings drawn here, then training strings.

    `forbidden` texts are spoken in no split; test and valid strings are not spoken in training. Every prefix is
    usable: voices alternate and lengths are mixed. A tempo a few percent off 1.0 gives the single words, of which
    there are only ten, some variety; the words of one digit are always allowed.
    """
    rng = random.Random(seed)
    banned = {tuple(words_of(text)) for text in (*test, *forbidden)}
    items = [Item(i, voice, "test", text, 1.0) for i, (text, voice) in enumerate(deal(test, voices))]

    def draw(lengths: Sequence[int]) -> tuple[str, ...]:
        while True:
            words = tuple(rng.choice(DIGITS) for _ in range(rng.choice(lengths)))
            if len(words) == 1 or words not in banned:
                return words

    for position in range(valid):
        words = draw(HELD_OUT_LENGTHS)
        banned.add(words)
        items.append(Item(len(items), voices[position % len(voices)], "valid", _punctuate(words, rng), 1.0))
    singles = {voice: [(word,) for word in DIGITS] for voice in voices}
    for position in range(per_voice * len(voices)):
        voice = voices[position % len(voices)]
        words = singles[voice].pop(0) if singles[voice] else draw(TRAIN_LENGTHS)
        tempo = round(1.0 + rng.uniform(-TEMPO_SPREAD, TEMPO_SPREAD), 3)
        items.append(Item(len(items), voice, "train", _punctuate(words, rng), tempo))
    return items


def trim(
    audio: np.ndarray, lead_s: float = 0.04, tail_s: float = 0.08, threshold: float = 0.01
) -> np.ndarray:
    """Cut silence at both ends, leaving `lead_s` and `tail_s`; threshold is relative to the loudest 10 ms."""
    hop = SAMPLE_RATE // 100
    frames = len(audio) // hop
    level = np.sqrt((audio[: frames * hop].reshape(frames, hop) ** 2).mean(1)) if frames else np.zeros(0)
    if frames == 0 or level.max() == 0:
        return audio[:0]
    loud = np.flatnonzero(level > threshold * level.max())
    start = max(0, loud[0] * hop - int(lead_s * SAMPLE_RATE))
    stop = min(len(audio), (loud[-1] + 1) * hop + int(tail_s * SAMPLE_RATE))
    return audio[start:stop]


def level(audio: np.ndarray, rms: float = 0.08) -> np.ndarray:
    """Scale so that the sounding part has `rms`; the peak stays below 0.97."""
    sounding = np.abs(audio) > 0.02 * np.abs(audio).max()
    audio = audio * (rms / np.sqrt((audio[sounding] ** 2).mean()))
    return audio / max(1.0, float(np.abs(audio).max()) / 0.97)


def defect(audio: np.ndarray, words: int) -> str | None:
    """Why a trimmed clip is unfit for training, or None. A digit lasts 0.15 to 1.2 s, commas add pauses."""
    if len(audio) == 0:
        return "silent"
    if not np.isfinite(audio).all():
        return "not finite"
    seconds = len(audio) / SAMPLE_RATE
    if not 0.15 * words <= seconds <= 1.2 * words + 0.8:
        return f"lasts {seconds:.2f} s for {words} words"
    if (np.abs(audio) >= 0.999).mean() > 0.001:
        return "clipped"
    return None


def pad_to_steps(audio: np.ndarray) -> np.ndarray:
    """Pad with zeros to 512 k + 256 samples: centre-padded analysis then gives the even number 2k + 2 of mel frames."""
    steps = max(1, math.ceil((len(audio) - 256) / SAMPLES_PER_STEP))
    padded = np.zeros(steps * SAMPLES_PER_STEP + 256, np.float32)
    padded[: min(len(audio), len(padded))] = audio[: len(padded)]
    return padded


@dataclass(frozen=True)
class Clip:
    """A spoken item: audio [N] float32 at 24 kHz."""

    item: Item
    audio: np.ndarray


def write_shard(path: Path, clips: Sequence[Clip], dropped: Sequence[dict]) -> None:
    """One npz of 16-bit audio and its JSON index; appears whole or not at all."""
    pcm = [np.round(np.clip(clip.audio, -1, 1) * 32767).astype(np.int16) for clip in clips]
    index = {
        "items": [asdict(c.item) for c in clips],
        "lengths": [len(p) for p in pcm],
        "dropped": list(dropped),
    }
    scratch = path.with_suffix(".tmp.npz")
    np.savez(scratch, wave=np.concatenate(pcm) if pcm else np.zeros(0, np.int16), index=json.dumps(index))
    scratch.replace(path)


def read_shard(path: Path) -> tuple[list[Clip], list[dict]]:
    with np.load(path) as stored:
        index, wave = json.loads(str(stored["index"])), stored["wave"]
    ends = np.cumsum(index["lengths"])
    clips = [
        Clip(Item(**item), wave[end - length : end].astype(np.float32) / 32767.0)
        for item, length, end in zip(index["items"], index["lengths"], ends, strict=True)
    ]
    return clips, index["dropped"]


def shards(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("shard-*.npz") if not p.name.endswith(".tmp.npz"))


def read_corpus(folder: Path, split: str | None = None) -> Iterator[Clip]:
    """All clips on disk in plan order, of one split or of all."""
    for path in shards(folder):
        yield from (clip for clip in read_shard(path)[0] if split in (None, clip.item.split))
