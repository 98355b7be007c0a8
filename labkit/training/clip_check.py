"""Does a clip say its text? Recognizers' answers for every clip on disk, kept beside its shard.

Whisper-base hears every clip; where it is wrong a second recognizer, which knows the domain's words and no others, is
asked as well, because Whisper has nothing to go by in a word or two. A clip is fit when either heard it right.

A pass of its own, so that the teacher never waits for it; it resumes at the first shard without answers. Raw answers
are kept, verdicts are made on reading. Silence, clipping and odd durations never get this far: such clips are dropped
while they are made, and the shard says why; both kinds of loss are counted here. Knows spelling and homophones of
the domain; does not know who spoke.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from labkit.quality.words import comparable_words, heard_digits
from labkit.training.corpus import SAMPLE_RATE, edit_distance, read_shard, shards, words_of

WORDS_AN_ERROR = 4
"""One wrong word is forgiven for so many: Whisper-base mishears a few percent of clean speech itself."""
SHORTEST_S = 0.1
SPELLINGS = {
    "ok": "okay", "metres": "meters", "write": "right", "read": "red", "blew": "blue", "know": "no", "ours": "hours",
    "our": "hours", "clothes": "close", "paws": "pause",
}  # fmt: skip

Ear = Callable[
    [np.ndarray, str], str
]  # audio [N] at 24 kHz and its text (for the kind of it) -> what was heard
Ears = Sequence[Ear]


@dataclass(frozen=True)
class Answer:
    """What was heard of one clip; `errors` and `words` count words in comparable spelling."""

    index: int
    heard: str
    errors: int
    words: int

    @property
    def is_right(self) -> bool:
        return self.errors <= self.words // WORDS_AN_ERROR


@dataclass(frozen=True)
class Tally:
    """What a corpus lost: clips heard, and the dropped ones by reason."""

    clips: int
    lost: Counter[str]
    errors: int
    words: int

    def in_words(self) -> str:
        reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self.lost.items())) or "none"
        rate = f"{100 * self.errors / self.words:.1f} %" if self.words else "unknown"
        return f"check: {self.clips} clips heard, word error rate {rate}; dropped: {reasons}"


def comparable(text: str) -> list[str]:
    """Words as they are compared: as the quality panel does, with the domain's homophones as its words."""
    return heard_digits([SPELLINGS.get(word, word) for word in comparable_words(text)])


def two_ears() -> Ears:
    """Whisper-base from its packages, and the closed recognizer; `ScorerFileError` when one is not installed."""
    from labkit.quality.audio import to_16k
    from labkit.quality.whisper import Whisper, assemble
    from labkit.training.closed_ear import ClosedEar

    whisper = Whisper(assemble())
    return (lambda audio, _: whisper.transcribe(to_16k(audio)), ClosedEar())


def answer(index: int, text: str, audio: np.ndarray, ears: Ears) -> Answer:
    """The first ear that hears the text right; when none does, what the first one heard."""
    said = comparable(" ".join(words_of(text)))
    if len(audio) < SHORTEST_S * SAMPLE_RATE:
        return Answer(index, "", len(said), len(said))
    answers = []
    for ear in ears:
        heard = ear(audio, text)
        answers.append(Answer(index, heard, edit_distance(said, comparable(heard)), len(said)))
        if answers[-1].is_right:
            return answers[-1]
    return answers[0]


def answers_path(shard: Path) -> Path:
    return shard.with_suffix(".heard.json")


def check_corpus(
    folder: Path, ears: Ears, *, worker: int = 0, workers: int = 1, say: Callable[[str], None] = print
) -> Tally:
    """Hear every shard that has no answers yet, then tell what the corpus lost as far as it has been heard."""
    paths = shards(folder)
    for number in range(worker, len(paths), workers):
        kept = answers_path(paths[number])
        if kept.exists():
            continue
        answers = [answer(c.item.index, c.item.text, c.audio, ears) for c in read_shard(paths[number])[0]]
        _write(kept, answers)
        wrong = sum(not a.is_right for a in answers)
        say(f"check: shard {number + 1}/{len(paths)}, {len(answers)} clips, {wrong} not as they should be")
    return tally(folder)


def _write(path: Path, answers: Sequence[Answer]) -> None:
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps([asdict(a) for a in answers]), encoding="utf-8")
    scratch.replace(path)


def read_answers(folder: Path) -> Iterator[Answer]:
    """All answers on disk in plan order."""
    for path in map(answers_path, shards(folder)):
        if path.exists():
            yield from (Answer(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def found_right(folder: Path) -> set[int]:
    """Indexes of the items whose clips say what they should."""
    return {a.index for a in read_answers(folder) if a.is_right}


def tally(folder: Path) -> Tally:
    answers = list(read_answers(folder))
    lost = Counter(_kind(drop["reason"]) for path in shards(folder) for drop in read_shard(path)[1])
    lost["misheard"] = sum(not a.is_right for a in answers)
    return Tally(len(answers), +lost, sum(a.errors for a in answers), sum(a.words for a in answers))


def _kind(reason: str) -> str:
    """Reasons with figures in them ("lasts 5.00 s for 1 words") count as one kind."""
    return "of odd duration" if reason.startswith("lasts") else reason
