"""Text <-> token ids, through a voice's own `tokenizer/tokenizer.json`, and builders of small tokenizers.

ChatTTS's tokenizer is BERT's (bert-base-chinese) with 50 control tokens after its words. The builders write the same
kind in files that both this module and BERT's loader read: whole words for a voice of a small domain, and synthetic
entries for a voice of random weights, since the real vocabulary comes only with the real checkpoint.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers

from labkit.errors import CheckpointError
from labkit.text.tokens import BERT_TOKENS, CONTROL_TOKENS

_UNKNOWN = "[UNK]"
_FOLDER = "tokenizer"
_COMMON_PIECES = (
    *(
        "the",
        "and",
        "you",
        "that",
        "for",
        "with",
        "this",
        "have",
        "not",
        "are",
        "from",
        "one",
        "two",
        "three",
    ),
    *("##ed", "##ing", "##er", "##ly", "##tion", "##al", "##en", "##es", "##or", "##an", "##in"),
)
_CJK = (0x4E00, 0x9FFF)  # the basic block of unified ideographs


class Tokenizer:
    """A voice's tokenizer. Never adds tokens of its own: the prompt's control tokens are part of the text."""

    def __init__(self, backend: tokenizers.Tokenizer, source: str):
        self._backend = backend
        self._source = source
        self.unknown_id = self.token_id(_UNKNOWN)

    @classmethod
    def from_folder(cls, asset: Path) -> Tokenizer:
        """Read `tokenizer/tokenizer.json` of an asset folder; CheckpointError when it is missing or damaged."""
        path = asset / _FOLDER / "tokenizer.json"
        if not path.is_file():
            raise CheckpointError(f"{path}: missing; the voice needs its tokenizer beside its weights.")
        try:
            backend = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for any damage
            raise CheckpointError(f"{path}: not a tokenizer: {error}.") from error
        backend.no_padding()
        backend.no_truncation()
        return cls(backend, str(path))

    def __len__(self) -> int:
        return self._backend.get_vocab_size(with_added_tokens=True)

    def __contains__(self, token: str) -> bool:
        return self._backend.token_to_id(token) is not None

    def token_id(self, token: str) -> int:
        """The id of one token by name, e.g. `[spk_emb]`; CheckpointError when the voice has none."""
        found = self._backend.token_to_id(token)
        if found is None:
            raise CheckpointError(
                f"{self._source}: the tokenizer has no token {token!r}, which speaking needs."
            )
        return found

    def encode(self, text: str) -> list[int]:
        return self._backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of the ids, control tokens included, words joined as BERT joins them."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def words(self, text: str) -> list[tuple[str, bool]]:
        """The words of a text as the tokenizer cuts them, control tokens left out: (word, is known)."""
        encoding = self._backend.encode(text, add_special_tokens=False)
        words: dict[tuple[int, int], bool] = {}
        for index, (token, token_id) in enumerate(zip(encoding.tokens, encoding.ids, strict=True)):
            if token in _CONTROL_SET:
                continue
            word = encoding.token_to_word(index)
            start, end = (word is not None and encoding.word_to_chars(word)) or encoding.offsets[index]
            words[(start, end)] = words.get((start, end), True) and token_id != self.unknown_id
        return [(text[start:end], known) for (start, end), known in words.items()]

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Words that become `[UNK]`, each once, in order of appearance."""
        return tuple(dict.fromkeys(word for word, known in self.words(text) if not known))


_CONTROL_SET = frozenset(CONTROL_TOKENS)


def write_word_tokenizer(asset: Path, words: Sequence[str]) -> Tokenizer:
    """Write the tokenizer of a voice that knows whole words only; anything else becomes `[UNK]`.

    Ids: BERT's five tokens, the words in the given order (lower case), then the control tokens.
    """
    odd = [word for word in words if word != word.lower() or not word or any(c.isspace() for c in word)]
    if odd:
        raise ValueError(f"write_word_tokenizer: words must be single and lower case, found {odd!r}")
    return _write(asset, [*BERT_TOKENS, *dict.fromkeys(words)])


def write_synthetic_tokenizer(asset: Path, size: int) -> Tokenizer:
    """Write a tokenizer of exactly `size` entries that can read any ASCII word and common Chinese characters.

    It stands in for the real vocabulary where only its size matters, beside random weights.
    """
    letters = string.ascii_lowercase + string.digits
    pieces = [*BERT_TOKENS, *letters, *(f"##{c}" for c in letters), *string.punctuation]
    pieces += [*"。，！？、；：“”‘’（）《》…—", *_COMMON_PIECES]
    ideographs = (chr(c) for c in range(_CJK[0], _CJK[1] + 1))
    room = size - len(CONTROL_TOKENS)
    least = len(BERT_TOKENS) + 2 * len(letters)
    if not least <= room <= len(pieces) + _CJK[1] + 1 - _CJK[0]:
        raise ValueError(
            f"write_synthetic_tokenizer: size {size} is not in what it can fill, from {least + 50} on"
        )
    while len(pieces) < room:
        pieces.append(next(ideographs))
    return _write(asset, pieces[:room])


def _write(asset: Path, vocabulary: Sequence[str]) -> Tokenizer:
    ids = {token: index for index, token in enumerate(vocabulary)}
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token=_UNKNOWN, max_input_chars_per_word=100))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    backend.add_special_tokens(list(BERT_TOKENS))
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in CONTROL_TOKENS])
    folder = asset / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    backend.save(str(folder / "tokenizer.json"))
    named = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_TOKENS, strict=True)
    )
    named_and_more = {**named, "additional_special_tokens": list(CONTROL_TOKENS)}
    config = {
        **named_and_more,
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "clean_up_tokenization_spaces": True,
        "model_max_length": 10**9,
    }
    for name, data in (("tokenizer_config.json", config), ("special_tokens_map.json", named_and_more)):
        (folder / name).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return Tokenizer.from_folder(asset)
