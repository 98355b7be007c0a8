"""The words of the nano voice as token ids, and its prompt.

The ids here are those of the tokenizer that is packed with the voice: BERT's special tokens, the domain, ChatTTS's
control tokens.
"""

from __future__ import annotations

from labkit.text.tokens import BERT_TOKENS, CONTROL_TOKENS
from labkit.training.corpus import PUNCTUATION
from labkit.training.lexicon import LEXICON
from labkit.training.pace import speed_token

DOMAIN = (*PUNCTUATION, *LEXICON)
TOKENS = (*BERT_TOKENS, *DOMAIN, *CONTROL_TOKENS)
ID = {token: index for index, token in enumerate(TOKENS)}
PROMPT_HEAD = ("[Stts]", "[spk_emb]")  # and the speed token
SPEAKER_POSITION = 1


def split_marks(text: str) -> list[str]:
    """Words, punctuation marks and control tokens, each apart: ``"one, two."`` -> one , two ."""
    for mark in PUNCTUATION:
        text = text.replace(mark, f" {mark} ")
    return text.split()


def prompt_ids(text: str, tempo: float = 1.0) -> list[int]:
    """The ids of the whole code prompt of a text spoken at `tempo`. KeyError for a word outside the domain."""
    return [ID[token] for token in (*PROMPT_HEAD, speed_token(tempo), *split_marks(text), "[Ptts]")]


def word_positions(text: str) -> list[int]:
    """Where in `prompt_ids(text)` the words stand, marks and control tokens left out."""
    first = len(PROMPT_HEAD) + 1
    tokens = enumerate(split_marks(text), start=first)
    return [i for i, token in tokens if token not in PUNCTUATION and not token.startswith("[")]
