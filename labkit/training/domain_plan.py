"""What the whole domain's speech corpus says: sentences of the grammar with their voice, split, pace and pauses.

A pure function of a seed. Held-out sentences never occur in training, in any voice, at any pace and however marks and
pauses fall: they are refused while drawing. Every prefix is usable: voices alternate, each voice's words and lengths
are balanced as the plan goes on, and held-out texts are dealt out among the training ones. Knows no audio.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import cycle

from labkit.training.corpus import DIGITS, VOICES, Item, deal, words_of
from labkit.training.grammar import Grammar, Sentence, words_of_sentence
from labkit.training.lexicon import TENS
from labkit.training.pace import tempo_of

PAUSE = "[uv_break]"
# One entry per ticket in the draw, as for the digit corpus; ten words are the most.
LENGTHS = (1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 10)
HELD_OUT_LENGTHS = (3, 4, 5, 6, 7, 8, 9, 10)
PACES = (
    3,
    3,
    4,
    4,
    5,
    5,
    5,
    5,
    5,
    5,
    6,
    6,
    7,
)  # the n of [speed_n], a ticket each; hurried speech is often misheard
PACE_SPREAD = 0.03
PAUSE_SHARE = 0.15
PAUSE_AT_BORDER_SHARE = 0.7
COMMA_SHARE = 0.25  # of the borders between phrases
FULL_STOP_SHARE = 0.15
TEST_EVERY, VALID_EVERY = 8, 16  # one item in so many is held out, until the lists are used up

Words = tuple[str, ...]


@dataclass(frozen=True)
class DomainRecipe:
    """The domain corpus in numbers. Voices are those of the digit corpus, which belongs to the whole as it is."""

    voices: tuple[str, ...] = VOICES
    items: int = 4608
    valid: int = 60
    seed: int = 40


class HeldOutTexts:
    """Word sequences that training must not say, and digit runs that it must not dial."""

    def __init__(self, texts: Collection[str]) -> None:
        self._whole = {tuple(words_of(text)) for text in texts}
        self._runs = {words for words in self._whole if set(words) <= set(DIGITS)}

    def forbid(self, words: Words) -> None:
        self._whole.add(words)

    def __contains__(self, words: object) -> bool:
        """Single words are always allowed: the lexicon is to be learned."""
        assert isinstance(words, tuple), words
        return len(words) > 1 and (
            words in self._whole or any(run in self._runs for run in digit_runs(words))
        )


def digit_runs(words: Words) -> list[Words]:
    """The longest stretches of two or more digits: "call one two now" -> [("one", "two")]."""
    runs: list[list[str]] = [[]]
    for word in words:
        if word in DIGITS:
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    return [tuple(run) for run in runs if len(run) > 1]


def held_out_texts(count: int, lengths: Sequence[int], seed: int, taken: Collection[str] = ()) -> list[str]:
    """`count` different sentences without marks, lengths in turn; `taken` ones are refused."""
    grammar, rng = Grammar(), random.Random(seed)
    refused = HeldOutTexts(taken)
    texts: list[str] = []
    while len(texts) < count:
        words = words_of_sentence(grammar.draw(lengths[len(texts) % len(lengths)], rng))
        if words not in refused:
            refused.forbid(words)
            texts.append(" ".join(words))
    return texts


def domain_plan(recipe: DomainRecipe, test: Sequence[str], forbidden: Sequence[str]) -> list[Item]:
    """The corpus as a list of items; a longer plan begins with the shorter one.

    `test` texts are spoken plainly, `forbidden` ones in no split; `recipe.valid` further sentences are drawn here and
    held out of training. An item's `tempo` is the teacher's, `speed_token` its control token; `text` may hold commas,
    a full stop and `[uv_break]`.
    """
    rng = random.Random(recipe.seed)
    refused = HeldOutTexts((*test, *forbidden))
    held_back = deque(_draw_valid(recipe, refused))
    tests = deque(deal(test, recipe.voices))
    grammars = {voice: Grammar() for voice in recipe.voices}
    turns = {split: cycle(recipe.voices) for split in ("train", "valid")}
    items: list[Item] = []
    for index in range(recipe.items):
        if tests and index % TEST_EVERY == TEST_EVERY // 2:
            text, voice = tests.popleft()
            items.append(Item(index, voice, "test", text, 1.0))
            continue
        split = "valid" if held_back and index % VALID_EVERY == VALID_EVERY - 1 else "train"
        voice = next(turns[split])
        sentence = held_back.popleft() if split == "valid" else _draw(grammars[voice], LENGTHS, refused, rng)
        tempo = tempo_of(rng.choice(PACES)) * (1 + rng.uniform(-PACE_SPREAD, PACE_SPREAD))
        items.append(Item(index, voice, split, written(sentence, rng), round(tempo, 3)))
    return items


def _draw_valid(recipe: DomainRecipe, refused: HeldOutTexts) -> list[Sentence]:
    grammar, rng = Grammar(), random.Random(recipe.seed + 1)
    sentences = []
    for _ in range(recipe.valid):
        sentence = _draw(grammar, HELD_OUT_LENGTHS, refused, rng)
        refused.forbid(words_of_sentence(sentence))
        sentences.append(sentence)
    return sentences


def _draw(grammar: Grammar, lengths: Sequence[int], refused: HeldOutTexts, rng: random.Random) -> Sentence:
    while True:
        sentence = grammar.draw(rng.choice(lengths), rng)
        if words_of_sentence(sentence) not in refused:
            return sentence


def written(sentence: Sentence, rng: random.Random) -> str:
    """The sentence as text: perhaps one `[uv_break]`, commas between phrases, a full stop."""
    marks: dict[int, str] = {}  # number of words before the mark -> mark
    borders = _borders(sentence)
    for border in borders:
        if rng.random() < COMMA_SHARE:
            marks[border] = ","
    words = words_of_sentence(sentence)
    if len(words) >= 3 and rng.random() < PAUSE_SHARE:
        inner = [i for i in range(1, len(words)) if words[i - 1] not in TENS or words[i] not in DIGITS]
        places = borders if borders and rng.random() < PAUSE_AT_BORDER_SHARE else inner
        marks[rng.choice(places)] = f" {PAUSE}"
    text = " ".join(f"{word}{marks.get(i, '')}" for i, word in enumerate(words, start=1))
    return f"{text}." if rng.random() < FULL_STOP_SHARE else text


def _borders(sentence: Sentence) -> list[int]:
    """Numbers of words before each border between phrases."""
    passed = 0
    borders = []
    for phrase in sentence[:-1]:
        passed += len(phrase)
        borders.append(passed)
    return borders
