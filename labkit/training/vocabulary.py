"""The words of the nano voice as token ids, and its prompt.

The ids here are those of the tokenizer that is packed with the voice: BERT's special tokens, the domain, ChatTTS's
control tokens.
"""

from __future__ import annotations

from labkit.text.tokenizer import BERT_TOKENS, CONTROL_TOKENS
from labkit.training.corpus import DIGITS, PUNCTUATION

DOMAIN = (*PUNCTUATION, *DIGITS)
TOKENS = (*BERT_TOKENS, *DOMAIN, *CONTROL_TOKENS)
ID = {token: index for index, token in enumerate(TOKENS)}
DEFAULT_TEMPO = "[speed_5]"
PROMPT_HEAD = ("[Stts]", "[spk_emb]", DEFAULT_TEMPO)
SPEAKER_POSITION = 1


def split_marks(text: str) -> list[str]:
    """Words and punctuation marks as separate tokens: ``"one, two."`` -> one , two ."""
    for mark in PUNCTUATION:
        text = text.replace(mark, f" {mark} ")
    return text.split()


def prompt_ids(text: str) -> list[int]:
    """The ids of the whole code prompt. Raises KeyError for a word outside the domain."""
    return [ID[token] for token in (*PROMPT_HEAD, *split_marks(text), "[Ptts]")]


def word_positions(text: str) -> list[int]:
    """Where in `prompt_ids(text)` the words stand, marks left out."""
    tokens = split_marks(text)
    return [len(PROMPT_HEAD) + i for i, token in enumerate(tokens) if token not in PUNCTUATION]
