"""Which sentences to calibrate on: enough of them, readable, and none that a recipe is later judged by.

A list is named as a corpus of the manifest whose split is `calibration`, several of them joined by `+`, or a text file
of the user's own. Knows no voice but what it can say.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.errors import CalibrationError
from labkit.text.corpus import CorpusText, corpus_folder, known_corpora, load_corpus
from labkit.text.numbers import DIGITS

if TYPE_CHECKING:
    from labkit.voices import Voice

MIN_SENTENCES, MAX_SENTENCES = 50, 200
"""Fewer leave ranges to chance; more cost time and hardly move them."""
_OWN_FILE = ".txt"


def default_corpus(voice: Voice) -> str:
    """Both languages for a voice of open text; of a closed domain, digits, or commands if it knows more words."""
    if not voice.domain_words:
        return "english-calibration+mandarin-calibration"
    return "nano-calibration" if set(voice.domain_words) <= set(DIGITS) else "nano-domain-calibration"


def judging_corpus(voice: Voice) -> str:
    """The evaluation lists that go with `default_corpus`."""
    if not voice.domain_words:
        return "english-evaluation+mandarin-evaluation"
    return "nano-heldout" if set(voice.domain_words) <= set(DIGITS) else "nano-domain-eval"


def judging_texts(corpus: str, sentences: int) -> tuple[CorpusText, ...]:
    """`sentences` texts of evaluation lists joined by `+`, or all if they are fewer, spread evenly.

    CalibrationError for a calibration list: what was chosen on it would look better than it is.
    """
    lists = [load_corpus(name.strip()) for name in corpus.split("+")]
    for each in lists:
        if each.split != "evaluation":
            raise CalibrationError(
                f"corpus {each.name!r} is a calibration list: a recipe cannot be judged by what it was tuned on. "
                "Name an evaluation list."
            )
    texts = [text for each in lists for text in each.texts]
    count = min(sentences, len(texts))
    return tuple(texts[i * len(texts) // count] for i in range(count))


def calibration_texts(corpus: str, sentences: int, *, minimum: int = MIN_SENTENCES) -> tuple[CorpusText, ...]:
    """`sentences` texts, spread evenly over the list, so that each of its domains is there.

    CalibrationError when the number is out of range, when the list is empty, too short, not UTF-8, an evaluation list,
    or shares a text with one.
    """
    if not minimum <= sentences <= MAX_SENTENCES:
        raise CalibrationError(f"calibration: {sentences} sentences; ask for {minimum} to {MAX_SENTENCES}.")
    texts = [text for name in _names(corpus) for text in _read(name)]
    if len(texts) < sentences:
        raise CalibrationError(
            f"calibration list {corpus!r} has {len(texts)} texts, but {sentences} were asked for; "
            f"ask for fewer (at least {minimum}), add texts, or join lists with '+'."
        )
    _refuse_overlap(corpus, texts)
    return tuple(texts[i * len(texts) // sentences] for i in range(sentences))


def _names(corpus: str) -> list[str]:
    """The lists joined by `+`; one within the path of a file that is there joins nothing."""
    pieces, names = corpus.split("+"), []
    while pieces:
        longest_first = ("+".join(pieces[:count]).strip() for count in range(len(pieces), 0, -1))
        files = (name for name in longest_first if name.endswith(_OWN_FILE) and _path(name).is_file())
        names.append(next(files, pieces[0].strip()))
        del pieces[: names[-1].count("+") + 1]
    return names


def _path(name: str) -> Path:
    return Path(name).expanduser()


def _read(name: str) -> list[CorpusText]:
    if name.endswith(_OWN_FILE):
        return _read_file(_path(name))
    corpus = load_corpus(name)
    if corpus.split != "calibration":
        lists = ", ".join(known for known in known_corpora() if load_corpus(known).split == "calibration")
        raise CalibrationError(
            f"corpus {name!r} is an evaluation list: a recipe tuned on it could not be judged by it. "
            f"Calibration lists: {lists}; or give a .txt file of your own."
        )
    return list(corpus.texts)


def _read_file(path: Path) -> list[CorpusText]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CalibrationError(
            f"calibration list {path}: byte {error.start} is not UTF-8; save the file as UTF-8."
        ) from error
    except OSError as error:
        raise CalibrationError(f"calibration list {path} cannot be read: {error.strerror}.") from error
    texts = dict.fromkeys(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not texts:
        raise CalibrationError(f"calibration list {path} is empty; write one sentence a line.")
    return [CorpusText(f"{path.stem}-{i:03d}", text) for i, text in enumerate(texts, 1)]


def _refuse_overlap(corpus: str, texts: list[CorpusText]) -> None:
    judged = _evaluation_texts(corpus_folder())
    for text in texts:
        if name := judged.get(_folded(text.text)):
            raise CalibrationError(
                f"calibration list {corpus!r}: {text.text!r} is also in the evaluation list {name!r}, "
                "and a recipe tuned on it could not be judged by that list; remove it."
            )


@cache
def _evaluation_texts(folder: Path) -> dict[str, str]:
    """Folded text -> the evaluation list that holds it."""
    lists = {name: load_corpus(name) for name in known_corpora()}
    return {
        _folded(text.text): name
        for name, corpus in lists.items()
        if corpus.split == "evaluation"
        for text in corpus.texts
    }


def _folded(text: str) -> str:
    """Letters and digits alone: marks, case and blanks do not make another sentence."""
    return re.sub(r"[\W_]+", "", text).casefold()
