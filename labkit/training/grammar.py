"""Sentences of one to ten words out of the lexicon: commands such as people give to a house or a robot.

A sentence is a list of phrases; between phrases a speaker may pause. Lengths come from the caller; words are balanced
by drawing several candidates of a length and keeping the one whose words were used least. A pure function of its
`random.Random` and of what was drawn before. Knows nothing of voices, held-out lists or speech.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from labkit.training.lexicon import GROUPS, LEXICON, number_words

LONGEST = 10
CANDIDATES = 6
TRIES = 400
# A word in angle brackets is any word of that group; "<number>" is two to ninety-nine in words, "<digits>" is three
# or four digits. Bars part phrases.
ORDERS = (
    "turn <side>", "go <side>", "<steer> <direction>", "<steer> <compass>", "turn <side> <manner>",
    "<steer> <direction> <manner>", "<steer> <compass> <manner>", "<steer> <direction> | on <day>",
    "<steer> <compass> | at <number>", "turn <number> degrees <side>", "<steer> <number> <distance> <direction>",
    "<steer> <number> <distance> <compass>", "stay <side>", "stay in the <room>", "go to the <room>",
    "<access> the <entry>", "<access> the <colour> <entry>", "<access> the <room> <entry>",
    "<control> the <device>", "<control> the <clock>", "<control> the <colour> <device>", "<control> <manner>",
    "<control> <device> <number>", "turn the <device> <state>", "turn <state> the <colour> <device>",
    "<adjust> the <level>", "set the <level> to <number> <measure>", "<adjust> the <device> | to <number> <measure>",
    "set the <clock> to <number> <duration>", "<media> the <sound>", "<media> <sound> | in the <room>",
    "<contact> the <room>", "call <digits>", "send <number> <goods>", "send the <sound> to the <room>",
    "show the <device>",
)  # fmt: skip
PHRASES = (
    "<number>", "<number>", "<number> <measure>", "<number> <goods>", "<number> <distance>", "<number> <duration>",
    "<direction> and <side>", "<compass> and <compass>", "<colour> <device>", "<colour> and <colour>",
    "<colour> <entry>", "<day> <daytime>", "<day> and <day>", "<moment> at <number>", "<state> at <number>",
)  # fmt: skip
ORDER_SHARE = 0.75
OPENINGS = ("<answer>", "<answer>", "<moment>")
ENDINGS = (
    "please", "<moment>", "<manner>", "on <day>", "on <day>", "<day> <daytime>", "at <number>",
    "in <number> <duration>", "in the <daytime>", "in the <room>",
)  # fmt: skip
NUMBER_RANGES = (
    range(2, 10),
    range(10, 20),
    range(10, 20),
    range(20, 100, 10),
    range(20, 100),
    range(20, 100),
)

Sentence = tuple[tuple[str, ...], ...]
"""Phrases of words."""


def words_of_sentence(sentence: Sentence) -> tuple[str, ...]:
    return tuple(word for phrase in sentence for word in phrase)


def _stutters(sentence: Sentence) -> bool:
    """Whether a word other than a digit follows itself."""
    return any(a == b and a not in GROUPS["digit"] for a, b in pairwise(words_of_sentence(sentence)))


class Grammar:
    """Draws sentences and remembers how often each word was used, so that the next ones even it out."""

    def __init__(self) -> None:
        self.used: Counter[str] = Counter()
        self._alone: Counter[str] = Counter()

    def draw(self, length: int, rng: random.Random) -> Sentence:
        """A sentence of exactly `length` words, 1 .. 10."""
        if not 1 <= length <= LONGEST:
            raise ValueError(f"Grammar.draw: sentences have 1 .. {LONGEST} words, not {length}")
        if length == 1:
            return self._word_alone(rng)
        found: list[Sentence] = []
        for _ in range(TRIES):
            sentence = self._sentence(length, rng)
            if len(words_of_sentence(sentence)) == length and not _stutters(sentence):
                found.append(sentence)
                if len(found) == CANDIDATES:
                    break
        return self._take(min(found, key=self._wear))

    def _word_alone(self, rng: random.Random) -> Sentence:
        word = min(rng.sample(LEXICON, len(LEXICON)), key=lambda w: self._alone[w])
        self._alone[word] += 1
        return self._take(((word,),))

    def _take(self, sentence: Sentence) -> Sentence:
        self.used.update(words_of_sentence(sentence))
        return sentence

    def _wear(self, sentence: Sentence) -> float:
        """Mean use of the words, glue left out: that is needed everywhere."""
        counts = [self.used[w] for w in words_of_sentence(sentence) if w not in GROUPS["glue"]]
        return sum(counts) / len(counts)

    def _sentence(self, length: int, rng: random.Random) -> Sentence:
        parts = [rng.choice(ORDERS if rng.random() < ORDER_SHARE else PHRASES)]
        if length >= 7 and rng.random() < 0.6:
            parts.append(f"and {rng.choice(ORDERS)}")
        if length >= 3 and rng.random() < 0.4:
            parts.append(rng.choice(ENDINGS))
        if length >= 3 and rng.random() < 0.3:
            parts.insert(0, rng.choice(OPENINGS))
        phrases = [phrase for part in parts for phrase in part.split("|")]
        return tuple(tuple(self._words(phrase, rng)) for phrase in phrases)

    def _words(self, phrase: str, rng: random.Random) -> list[str]:
        """The phrase filled in; a group that stands twice gives two different words."""
        words: list[str] = []
        for symbol in phrase.split():
            words += self._expand(symbol, words, rng)
        return words

    def _expand(self, symbol: str, before: Sequence[str], rng: random.Random) -> Sequence[str]:
        if not symbol.startswith("<"):
            return (symbol,)
        name = symbol[1:-1]
        if name == "number":
            return self._number(rng)
        if name == "digits":
            return [self._fresh(GROUPS["digit"], rng) for _ in range(rng.choice((3, 4)))]
        return (self._fresh([word for word in GROUPS[name] if word not in before], rng),)

    def _fresh(self, words: Sequence[str], rng: random.Random) -> str:
        """One of the less used of two draws."""
        return min(rng.choice(words), rng.choice(words), key=lambda w: self.used[w])

    def _number(self, rng: random.Random) -> tuple[str, ...]:
        return number_words(rng.choice(rng.choice(NUMBER_RANGES)))
