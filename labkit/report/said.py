"""The words of a run's items, for whoever listens to them."""

from __future__ import annotations

from labkit.errors import LabError
from labkit.results.schema import RunDocument


def texts_said(document: RunDocument) -> dict[str, str]:
    """What was said, by item; empty when the corpus is gone or no longer the one that was used.

    Clips can be heard without their words, so a page is made all the same.
    """
    from labkit.text.corpus import load_corpus

    try:
        corpus = load_corpus(document.spec.corpus)
    except LabError:
        return {}
    if corpus.content_hash != document.corpus_hash:
        return {}
    return {text.id: text.text for text in corpus.texts}
